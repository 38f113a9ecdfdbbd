// Mcp-client makes MCP tool calls and prints the answers, sorted:
//
//	mcp-client [FLAG…] ID=TOOL=ARGUMENTS… -- COMMAND…
//
// COMMAND is a tool server, or a proxy that runs one. ID goes into the call's
// _meta. It ends with the status of COMMAND.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

var (
	atOnce  = flag.Bool("at-once", false, "do not wait for an answer before the next call")
	noID    = flag.Bool("no-id", false, "send no _meta")
	list    = flag.Bool("list", false, "print the names of the tools first")
	kill    = flag.Duration("kill", 0, "kill COMMAND this long after the last call was sent, and wait for nothing")
	patient = flag.Duration("patience", 0, "wait this long before closing COMMAND's input")
)

type response struct {
	ID     *int `json:"id"`
	Result struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool   `json:"isError"`
		State   string `json:"requestState"`
	} `json:"result"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

type client struct {
	in    io.WriteCloser
	out   *bufio.Reader
	sent  int
	names map[int]call // those that have no answer yet
	said  []string
}

type call struct{ name, params string }

func main() {
	flag.Parse()
	err := run(flag.Args())
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		os.Exit(exit.ExitCode())
	case err != nil && *kill == 0:
		fmt.Fprintln(os.Stderr, "mcp-client:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	at := slices.Index(args, "--")
	if at < 0 || at == len(args)-1 {
		return errors.New("which command?")
	}
	c := exec.Command(args[at+1], args[at+2:]...)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	talk := &client{in: in, out: bufio.NewReader(out), names: map[int]call{}}
	err = talk.session(args[:at])
	if *kill > 0 {
		time.Sleep(*kill)
		c.Process.Kill()
	}
	time.Sleep(*patient)
	in.Close()
	io.Copy(io.Discard, talk.out)
	slices.Sort(talk.said)
	for _, s := range talk.said {
		fmt.Println(s)
	}
	return errors.Join(c.Wait(), err)
}

func (c *client) session(calls []string) error {
	if _, err := c.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"mcp-client","version":"1"}}`); err != nil {
		return err
	}
	if _, err := io.WriteString(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		return err
	}
	if *list {
		r, err := c.ask("tools/list", `{}`)
		if err != nil {
			return err
		}
		for _, t := range r.Result.Tools {
			c.said = append(c.said, "tool "+t.Name)
		}
	}
	for _, text := range calls {
		id, rest, _ := strings.Cut(text, "=")
		tool, arguments, ok := strings.Cut(rest, "=")
		if !ok {
			return fmt.Errorf("%s is not ID=TOOL=ARGUMENTS", text)
		}
		params := fmt.Sprintf(`{"name":%q,"arguments":%s`, tool, arguments)
		if !*noID {
			quoted, _ := json.Marshal(id)
			params += `,"_meta":{"tool_call_id":` + string(quoted) + "}"
		}
		n, err := c.send("tools/call", params+"}")
		if err != nil {
			return err
		}
		c.names[n] = call{id, params}
		if !*atOnce && *kill == 0 {
			if err := c.heard(); err != nil {
				return err
			}
		}
	}
	for *kill == 0 && len(c.names) > 0 {
		if err := c.heard(); err != nil {
			return err
		}
	}
	return nil
}

// heard takes one answer to a call.
func (c *client) heard() error {
	r, err := c.answer()
	if err != nil {
		return err
	}
	of, ok := c.names[*r.ID]
	if !ok {
		return fmt.Errorf("an answer to %d, which was not asked", *r.ID)
	}
	delete(c.names, *r.ID)
	if r.Result.State != "" { // the call continues in another request
		n, err := c.send("tools/call", fmt.Sprintf(`%s,"inputResponses":{},"requestState":%q}`, of.params, r.Result.State))
		c.names[n] = call{of.name, of.params}
		return errors.Join(err, c.heard())
	}
	what, text := "completed", ""
	for _, part := range r.Result.Content {
		text += part.Text
	}
	switch {
	case r.Error != nil:
		what, text = fmt.Sprint("error ", r.Error.Code), r.Error.Message
	case r.Result.IsError:
		what = "tool_error"
	}
	c.said = append(c.said, strings.TrimSpace(of.name+" "+what+" "+text))
	return nil
}

func (c *client) ask(method, params string) (response, error) {
	if _, err := c.send(method, params); err != nil {
		return response{}, err
	}
	return c.answer()
}

func (c *client) send(method, params string) (int, error) {
	c.sent++
	_, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.sent, method, params)
	return c.sent, err
}

func (c *client) answer() (r response, err error) {
	for r.ID == nil { // skips notifications
		line, err := c.out.ReadBytes('\n')
		if err != nil {
			return r, fmt.Errorf("%d calls were not answered: %w", len(c.names), err)
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return r, fmt.Errorf("%s: %w", line, err)
		}
	}
	return r, nil
}
