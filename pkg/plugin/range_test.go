package plugin

import "testing"

// What npm answers for the same ranges and versions.
func TestRangeHolds(t *testing.T) {
	for _, c := range []struct {
		text, version string
		want          bool
	}{
		{"", "1.2.3", true}, {"", "1.2.3-a", false}, {"*", "9.9.9", true}, {"x", "0.0.0", true}, {"^*", "7.0.0", true},
		{">=1.2", "1.2.0", true}, {">=1.2", "1.1.9", false}, {">1.2", "1.2.9", false}, {">1.2", "1.3.0", true},
		{"<=1.2", "1.2.9", true}, {"<=1.2", "1.3.0", false}, {"<1.2", "1.1.9", true}, {"<1.2", "1.2.0", false},
		{"1", "1.9.9", true}, {"1.x", "2.0.0", false}, {"1.2.*", "1.2.7", true}, {"=1.2.3", "1.2.3", true}, {"1.2.3", "1.2.4", false},
		{"^1.2.3", "1.9.0", true}, {"^1.2.3", "2.0.0", false}, {"^0.2.3", "0.2.9", true}, {"^0.2.3", "0.3.0", false},
		{"^0.0.3", "0.0.3", true}, {"^0.0.3", "0.0.4", false}, {"^0", "0.9.0", true}, {"^0.0", "0.0.9", true}, {"^0.0", "0.1.0", false},
		{"~1.2.3", "1.2.9", true}, {"~1.2.3", "1.3.0", false}, {"~1", "1.9.0", true}, {"~1.2", "1.3.0", false},
		{">= 1.2.3 <2", "1.5.0", true}, {">=1 <2 || >=3", "2.5.0", false}, {">=1 <2 || >=3", "3.0.0", true},
		// The same-triple rule (plugins.md 27).
		{">=1.2.3-beta.1", "1.3.0-alpha", false}, {"^1.2.3-beta.1", "1.4.0-rc.1", false},
		{">=0.1.0-rc.8 <0.2.0", "0.1.5-rc.2", false}, {">=0.1.0-rc.8 <0.2.0", "0.1.0-rc.9", true},
		{"^1.2.3-beta.1", "1.2.3-beta.2", true}, {"1.x", "2.0.0-alpha", false}, {"1.2.3-a", "1.2.3-a", true},
		{"*", "not a version", false},
	} {
		r, err := ParseRange(c.text)
		if err != nil || r.Holds(c.version) != c.want {
			t.Errorf("%q holds %s: got %v (%v)", c.text, c.version, r.Holds(c.version), err)
		}
	}
	for _, text := range []string{"1.2.3.4", "01.2", "1..2", ">", "a", "1.2.3 - 2", "!1", ">=>1", "1.2-a", "1.2.3-", "99999999999"} {
		if _, err := ParseRange(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
