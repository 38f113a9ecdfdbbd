package confine

import (
	"errors"

	"golang.org/x/sys/unix"
)

// LandlockActs is nil if Landlock refuses what it is told to refuse: it is tried on a
// thread that ends then. A kernel can have the calls and not the module.
func LandlockActs() error {
	if LandlockABI() == 0 {
		return errors.New("this kernel has no Landlock, or it is not in the list of lsm=")
	}
	return OnThread(func() error {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
		if err := restrict(ruleset{handled: unix.LANDLOCK_ACCESS_FS_READ_FILE}); err != nil {
			return err
		}
		fd, err := unix.Open("/proc/self/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
			return errors.New("an open that was to be refused was not: Landlock does nothing here")
		}
		if !errors.Is(err, unix.EACCES) {
			return err
		}
		return nil
	})
}
