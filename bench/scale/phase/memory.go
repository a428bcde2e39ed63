package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// resident finds the memory of this process, now and at most so far, in bytes.
func resident(found map[string]float64) error {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return fmt.Errorf("memory is only measured on Linux: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		var kibibytes float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kibibytes); n == 1 {
			found["memory"] = kibibytes * 1024
		}
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kibibytes); n == 1 {
			found["peak memory"] = kibibytes * 1024
		}
	}
	if found["memory"] == 0 || found["peak memory"] == 0 {
		return errors.New("/proc/self/status has no VmRSS and VmHWM of this process")
	}
	return nil
}
