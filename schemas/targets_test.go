package schemas

import "testing"

func TestAskedOf(t *testing.T) {
	for _, c := range []struct {
		effect  string
		targets []string
		want    Asked
	}{
		{"read /w/a", []string{"/w"}, AskedFor},
		{"read /w/a", []string{"/w/a"}, AskedFor},
		{"read /wa", []string{"/w"}, Unasked},
		{"read /w/../a", []string{"/w"}, Unasked},
		{"read /x", []string{"/"}, AskedFor},
		{"failed-read /w/a", []string{"/w"}, NoEffect},
		{"unproven-unlink /w/a", []string{"/w"}, NoEffect},
		{"file_blocked /w/a", []string{"/w"}, NoEffect},
		{"xattr user.x", nil, NoEffect},
		{"made-up /w", []string{"/w"}, NoEffect},
		{"mount /w", []string{"/w"}, AskedFor},
		{"mount proc", []string{"/w"}, MaybeAsked},
		{"connect 1.2.3.4:5", []string{"[::ffff:1.2.3.4]:5"}, AskedFor},
		{"connect [::ffff:1.2.3.4]:5", []string{"1.2.3.4:5"}, AskedFor},
		{"connect 1.2.3.4:5", []string{"example.com:443"}, MaybeHost},
		{"bind 1.2.3.4:5", []string{"example.com:5"}, Unasked},
		{"connect unix:/run/x", []string{"example.com:5", "/run"}, Unasked},
		{"connect unix:/run/x", []string{"unix:/run/x"}, AskedFor},
		{"send 1.2.3.4:53", nil, Unasked},
	} {
		if got := AskedOf(c.effect, c.targets); got != c.want {
			t.Errorf("%q of %q is %d, expected %d", c.effect, c.targets, got, c.want)
		}
	}
}
