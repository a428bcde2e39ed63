package upload

// IsServerGone reports whether an error of a call means that the server has ended.
func IsServerGone(err error) bool { return gone(err) != err } //nolint:errorlint // gone wraps it or not
