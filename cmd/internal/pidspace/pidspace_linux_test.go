package pidspace

import (
	"fmt"
	"os"
	"testing"

	"github.com/runner-evidence/runner/schemas/testkit"
)

// Our namespace is the one that the kernel names in the link.
func TestOwn(t *testing.T) {
	link, err := os.Readlink("/proc/self/ns/pid")
	testkit.Must(t, err)
	if got := fmt.Sprintf("pid:[%d]", Own()); got != link {
		t.Errorf("%s, expected %s", got, link)
	}
}
