package proc

// Exit statuses with a special meaning, as in shells, env(1) and timeout(1).
const (
	ExitTimeout   = 124 // ended by its timeout
	ExitOwn       = 125 // an error of the program that was to start the command
	ExitCannotRun = 126 // found, but not executable
	ExitNotFound  = 127 // no such program
	ExitSignal    = 128 // plus the number of the signal that ended the process
)
