package cluster

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
)

// hostNamespace is the namespace of the process numbers of a host, as Linux names it.
const hostNamespace = "pid:[4026531836]"

// defaultName returns the name of a node of this process.
func defaultName() string {
	host, _ := os.Hostname()                         // without it, the process number has to do
	namespace, _ := os.Readlink("/proc/self/ns/pid") // there is none on other systems than Linux
	return nameIn(namespace, cmp.Or(host, "host"), os.Getpid())
}

// nameIn returns host:pid. In a container, which numbers its processes by itself, another container
// may have the same number and, with the network of the host, the same host name. So the name ends there
// with characters that differ for each process.
func nameIn(namespace, host string, pid int) string {
	const random = 6 // characters
	name := fmt.Sprintf("%s:%d", host, pid)
	if namespace == "" || namespace == hostNamespace {
		return name
	}
	return name + "-" + strings.ToLower(rand.Text()[:random])
}
