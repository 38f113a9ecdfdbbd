//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// fileOps are the operations that rules of files name.
var fileOps = []string{"read", "write", "create", "delete"}

// paths are a folder of each attempt, of those about programs or of the others.
func paths(dir string, chosen []attempt, folder string, programs bool) (all []string) {
	for _, a := range chosen {
		if (a.op == "exec") == programs {
			all = append(all, filepath.Join(a.place(dir).top, folder))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func rule(id, action, on string, paths []string) {
	if len(paths) == 0 {
		return
	}
	if on != "" {
		on = "on: [" + on + "], "
	}
	fmt.Printf("    - {id: %s, %s%s: [%s]}\n", id, on, action, strings.Join(paths, ", "))
}

func section(name, def string) { fmt.Printf("%s:\n  default: %s\n  rules:\n", name, def) }

func denyPrograms(dir string, chosen []attempt) {
	if all := append(paths(dir, chosen, "secret", true), paths(dir, chosen, "noexec", true)...); len(all) > 0 {
		section("exec", "allow")
		rule("no-exec", "deny", "", all)
	}
}

// policyOfEach denies each operation where an attempt is about it.
func policyOfEach(dir string, chosen []attempt) error {
	fmt.Println("schema: runner.policy.v0")
	section("files", "allow")
	for _, op := range fileOps {
		var of []attempt
		for _, a := range chosen {
			if a.op == op {
				of = append(of, a)
			}
		}
		all := paths(dir, of, "secret", false)
		if op == "write" {
			all = append(all, logs(dir))
		}
		rule("no-"+op, "deny", op, all)
	}
	denyPrograms(dir, chosen)
	return nil
}

// policyOfAll denies all operations on what is secret.
func policyOfAll(dir string, chosen []attempt) error {
	fmt.Println("schema: runner.policy.v0")
	section("files", "allow")
	rule("secret", "deny", "", append(paths(dir, chosen, "secret", false), logs(dir)))
	denyPrograms(dir, chosen)
	return nil
}

// policyOfAllowed allows what the attempts need, and the rest of the machine.
func policyOfAllowed(dir string, chosen []attempt) error {
	system, err := systemFolders(dir)
	if err != nil {
		return err
	}
	open := append(paths(dir, chosen, "open", false), paths(dir, chosen, "open", true)...)
	fmt.Println("schema: runner.policy.v0")
	section("files", "deny")
	rule("system", "allow", "", system)
	rule("open", "allow", "", open)
	rule("programs", "allow", "read", append(paths(dir, chosen, "noexec", true), paths(dir, chosen, "secret", true)...))
	section("exec", "deny")
	rule("system-programs", "allow", "", system)
	rule("open-programs", "allow", "", open)
	return nil
}

// systemFolders are all folders of the machine but the one that dir is in; of that, the
// folder of this program.
func systemFolders(dir string) (all []string, err error) {
	entries, err := os.ReadDir("/")
	if err != nil {
		return nil, err
	}
	top := strings.Split(dir, "/")[1]
	for _, e := range entries {
		if e.IsDir() && e.Name() != top {
			all = append(all, "/"+e.Name())
		}
	}
	self, err := os.Readlink("/proc/self/exe")
	if strings.HasPrefix(self, "/"+top+"/") {
		all = append(all, filepath.Dir(self))
	}
	return all, err
}
