//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
)

// bigText is the length of the text that the tool big answers with.
const bigText = 50_000_000

// mcpServer is a tool server that only answers: a call costs what is between the server
// and the client.
func mcpServer(in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, 1<<20)
	var big []byte
	for {
		line, err := r.ReadSlice('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		_, rest, found := bytes.Cut(line, []byte(`"id":`))
		if !found {
			continue // a notification
		}
		id := rest[:max(0, bytes.IndexAny(rest, ",}"))]
		answer := []byte(`{"content":[{"type":"text","text":"done"}]}`)
		switch {
		case bytes.Contains(line, []byte(`"method":"initialize"`)):
			answer = []byte(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`)
		case bytes.Contains(line, []byte(`"name":"big"`)):
			if big == nil {
				big = bigAnswer()
			}
			answer = big
		}
		if _, err := out.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, answer)); err != nil {
			return err
		}
	}
}

// bigAnswer is a result of text as files hold it, newlines and quotes escaped.
func bigAnswer() []byte {
	b := append(make([]byte, 0, bigText+100), `{"content":[{"type":"text","text":"`...)
	for i := 0; len(b) < bigText; i++ {
		b = fmt.Appendf(b, `%d: a line of a file, with \"quotes\" and the occasional é\n`, i)
	}
	return append(b, `"}]}`...)
}

// mcpClient is the client of one server.
type mcpClient struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  io.Reader
	buf  []byte
	next int
	err  bytes.Buffer
}

// startMCP starts a server, or a proxy that runs one, and initializes it.
func (b *bench) startMCP(argv ...string) (*mcpClient, error) {
	c := &mcpClient{cmd: exec.Command(argv[0], argv[1:]...), buf: make([]byte, 1<<20)}
	c.cmd.Dir = b.dir
	c.cmd.Stderr = &c.err
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if c.out, err = c.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	_, err = c.ask(`"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`, nil)
	if err == nil {
		_, err = io.WriteString(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	if err != nil {
		c.stop()
		return nil, fmt.Errorf("%s: %w\n%s", argv[0], err, clip(c.err.String()))
	}
	return c, nil
}

// ask sends a request and reads the whole answer. It returns the length, and calls see,
// if that is not nil, with what it reads.
func (c *mcpClient) ask(rest string, see func([]byte)) (int, error) {
	c.next++
	if _, err := io.WriteString(c.in, `{"jsonrpc":"2.0","id":`+strconv.Itoa(c.next)+`,`+rest+"}\n"); err != nil {
		return 0, err
	}
	for sum := 0; ; {
		n, err := c.out.Read(c.buf)
		if sum += n; see != nil {
			see(c.buf[:n])
		}
		if n > 0 && c.buf[n-1] == '\n' {
			return sum, nil
		}
		if err != nil {
			return sum, fmt.Errorf("no answer: %w", err)
		}
	}
}

func (c *mcpClient) call(tool, path string, see func([]byte)) (int, error) {
	return c.ask(`"method":"tools/call","params":{"name":"`+tool+`","arguments":{"path":"`+path+`"},"_meta":{"callId":"call_`+strconv.Itoa(c.next)+`"}}`, see)
}

// stop closes the input and waits for the end of the server.
func (c *mcpClient) stop() error {
	c.in.Close()
	io.Copy(io.Discard, c.out)
	return c.cmd.Wait()
}

func mcpWorkload() error { return mcpServer(os.Stdin, os.Stdout) }
