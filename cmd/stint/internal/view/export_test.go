package view

// WithoutPasswords is withoutPasswords.
func WithoutPasswords(text string) string { return string(withoutPasswords([]byte(text))) }
