package server

import "time"

// ToServer converts the times of a call.
func ToServer(in any, ahead time.Duration) { toServer(in, ahead) }

// ToClient converts the times of an answer.
func ToClient(out any, ahead time.Duration) { toClient(out, ahead) }
