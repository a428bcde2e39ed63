package output

// CreateTemporary calls createTemporary.
var CreateTemporary = createTemporary
