package backlog

// Config is what a [Backlog] admits. The zero value admits nothing, because its
// Max is 0.
type Config struct {
	// Max is the maximum number of slots in use at once.
	Max int
	// Caps are the caps of the tiers as the user set them, 0 for unset.
	Caps [Tiers]int
	// PerKey is the maximum number of entries of one key that run at once, 0 for no limit.
	PerKey int
	// KeyLimits are the limits of single keys, which override PerKey, 0 for no limit. The
	// map must not be changed later.
	KeyLimits map[string]int
	// SharedLimits are limits of single keys too, for those without one in KeyLimits. Several
	// backlogs may have the same map. After a change of it, the caller calls [Keys.Review] for
	// each key that it concerns.
	SharedLimits map[string]int
	// Share returns the weight of a key in the fairness between keys, at least
	// 1. Nil gives every key the same.
	Share func(key string) int
	// Turned is called when a key is set aside, because it is at its limit or blocked, and then
	// [Keys.HasRoom] is false; and when it has room again. It must not call the backlog. Nil does nothing.
	Turned func(key string, room bool)
}
