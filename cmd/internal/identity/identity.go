// Package identity says who a tool starts its command as: the user of --user, or who called sudo.
package identity

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/runner-evidence/runner/cmd/internal/child"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// Identity is the user that the command is started as.
type Identity struct {
	child.User
	name, home string // empty if the user has no entry in the user database
}

// hintUser says what --user takes.
const hintUser = "--user NAME, --user UID or --user UID:GID; a UID without an entry in the user database needs the GID"

// Of is the user of --user. Without it, it is the user who called sudo; nil is the
// user of the tool itself.
func Of(env *tool.Env) (*Identity, error) {
	if !env.Flag.IsSet("user") {
		uid, gid, ok := tool.Invoker()
		if !ok {
			return nil, nil
		}
		id := lookUp(strconv.FormatUint(uint64(uid), 10))
		if id == nil {
			id = &Identity{User: child.User{UID: uid, GID: gid}}
		}
		return id, nil
	}
	text := env.Flag.String("user")
	id, err := parseUser(text)
	if err != nil {
		return nil, tool.Fail(tool.ExitUsage, fmt.Errorf("--user %q: %w", text, err), hintUser)
	}
	switch own := os.Geteuid(); {
	case int64(own) == int64(id.UID) && !strings.Contains(text, ":"):
		return nil, nil // nothing changes, as with sudo and --user root
	case own < 0:
		return nil, tool.Failf(tool.ExitCannot, "--user needs a system with user ids")
	case own != 0:
		return nil, tool.Fail(tool.ExitCannot, errors.New("--user needs root"), "sudo "+env.Name+" --user USER -- COMMAND")
	}
	return id, nil
}

// parseUser reads NAME, UID, or either with :GID. With a GID the user's other groups are
// left out.
func parseUser(text string) (*Identity, error) {
	who, group, grouped := strings.Cut(text, ":")
	id := lookUp(who)
	if id == nil {
		uid, err := strconv.ParseUint(who, 10, 32)
		switch {
		case err != nil:
			return nil, errors.New("there is no such user")
		case !grouped:
			return nil, errors.New("the user database has no such user, so the group is unknown")
		case uid == noID:
			return nil, errors.New("this number means no user")
		}
		id = &Identity{User: child.User{UID: uint32(uid)}}
	}
	if grouped {
		gid, err := strconv.ParseUint(group, 10, 32)
		if err != nil || gid == noID {
			return nil, fmt.Errorf("%q is not the number of a group", group)
		}
		id.GID, id.Groups = uint32(gid), nil
	}
	return id, nil
}

// noID leaves an id unchanged in the kernel's calls.
const noID = 1<<32 - 1

// lookUp finds a name or a number in the user database, with the user's groups.
func lookUp(who string) *Identity {
	u, err := user.Lookup(who)
	if err != nil {
		u, err = user.LookupId(who)
	}
	if err != nil {
		return nil
	}
	uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
	if errUID != nil || errGID != nil {
		return nil
	}
	id := &Identity{User: child.User{UID: uint32(uid), GID: uint32(gid)}, name: u.Username, home: u.HomeDir}
	groups, err := u.GroupIds()
	if err != nil {
		return id // only the group of the user's own entry
	}
	for _, g := range groups {
		if n, err := strconv.ParseUint(g, 10, 32); err == nil {
			id.Groups = append(id.Groups, uint32(n))
		}
	}
	return id
}

// Environment is env with the variables that name the user, as after su.
func (id *Identity) Environment(env []string) []string {
	if id == nil || id.name == "" {
		return env
	}
	set := map[string]string{"HOME": id.home, "USER": id.name, "LOGNAME": id.name}
	out := make([]string, 0, len(env)+len(set))
	for _, e := range env {
		if name, _, _ := strings.Cut(e, "="); set[name] == "" {
			out = append(out, e)
		}
	}
	for _, name := range []string{"HOME", "LOGNAME", "USER"} {
		if set[name] != "" {
			out = append(out, name+"="+set[name])
		}
	}
	return out
}

// Credential is what the command is started with; nil changes nothing.
func (id *Identity) Credential() *child.User {
	if id == nil {
		return nil
	}
	return &id.User
}
