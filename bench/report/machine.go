package report

import (
	"os"
	"runtime"
	"strings"
)

// Machine describes the kind of machine on which the figures were measured. It
// contains nothing that identifies a single machine.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	Go    string `json:"go"`
	OS    string `json:"os"`
	Arch  string `json:"arch"`
}

// ThisMachine describes the machine that the program runs on.
func ThisMachine() Machine {
	return Machine{
		CPU: cpuModel(), Cores: runtime.NumCPU(), Go: runtime.Version(),
		OS: runtime.GOOS, Arch: runtime.GOARCH,
	}
}

// cpuModel is what Linux calls the processor; other systems answer unknown.
func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
