package shared

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// patience is for machines that are very busy.
const patience = time.Minute

// process is the parent's side of a worker.
type process struct {
	cmd     *exec.Cmd
	in, out *os.File
	answers *json.Decoder
}

// start starts a worker, and waits until it is ready.
func (t *turn) start(o order) (*process, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirIn.Close() }()
	out, theirOut, err := os.Pipe()
	if err != nil {
		_ = in.Close()
		return nil, err
	}
	defer func() { _ = theirOut.Close() }()
	cmd := exec.Command(program) //nolint:noctx // stop ends it
	p := &process{cmd: cmd, in: in, out: out, answers: json.NewDecoder(out)}
	p.cmd.Env = append(os.Environ(), orderVariable+"="+string(text))
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirIn, theirOut, os.Stderr
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	t.Cleanup(p.stop)
	_, err = p.receive()
	return p, err
}

// stop closes the standard input of the worker, which then ends.
func (p *process) stop() {
	_ = p.in.Close()
	kill := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait() // a second time, if it was killed
	kill.Stop()
	_ = p.out.Close()
}

// kill kills the worker and waits until it is gone.
func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	_ = p.cmd.Wait() // the error is that it was killed
	return err
}

// send sends the worker a command.
func (p *process) send(command string) error {
	_, err := p.in.WriteString(command + "\n")
	return err
}

// receive waits for the worker's next answer.
func (p *process) receive() (a answer, err error) {
	if err := p.out.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return a, err
	}
	if err := p.answers.Decode(&a); err != nil {
		return a, fmt.Errorf("a worker does not answer: %w", err)
	}
	return a, nil
}

// ask sends the worker a command, and waits for the answer.
func (p *process) ask(command string) (answer, error) {
	if err := p.send(command); err != nil {
		return answer{}, err
	}
	return p.receive()
}
