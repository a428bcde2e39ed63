package shared

import "github.com/stintgo/stint"

// Limits opens the same slots twice for each system that needs no server of
// others, in dir, and returns the callers of each.
func Limits(dir string, slots, callers int) (map[string][]Caller, error) {
	const socket = "/socket"
	if err := serveDaemon(dir+socket, slots); err != nil {
		return nil, err
	}
	all := map[string][]Caller{}
	for name, address := range map[string]string{scheduler: dir, fileLocks: dir, tokenDaemon: dir + socket} {
		for range 2 {
			callers, err := order{System: name, Address: address, Slots: slots, Callers: callers / 2}.callers()
			if err != nil {
				return nil, err
			}
			for _, c := range callers {
				all[name] = append(all[name], Caller{c})
			}
		}
	}
	return all, nil
}

// Caller is what one goroutine has of a system.
type Caller struct{ caller }

// Hold calls a function with a slot.
func (c Caller) Hold(f func()) error {
	if err := c.acquire(stint.Normal); err != nil {
		return err
	}
	f()
	return c.release()
}
