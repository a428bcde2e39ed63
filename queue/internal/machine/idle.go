package machine

import (
	"time"
)

// A queue is made when it is first named by a task or by settings. Programs name
// queues after what comes and goes, such as their customers, so one that has been of
// no use for long is forgotten. Nobody looks for such queues: whoever forgets finished
// tasks goes through all of them anyway.

// lineLives is how long a queue that is of no use is kept, with the counts of what has
// ended in it.
const lineLives = 24 * time.Hour
