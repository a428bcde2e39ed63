package peer

// Trusted is trusted.
var Trusted = trusted
