package peer

// Trusted decides whom a process deals with.
var Trusted = trusted
