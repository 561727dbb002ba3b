package profile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/fault"
)

// dshHome makes a home as dsh writes it: a profile with its manifest, the three
// lines of a fresh patch, the rewritten empty root, and bundles among the modules
// of the installation and of the profile.
func dshHome(t *testing.T, bundles, patch string, more map[string]string) string {
	t.Helper()
	home := t.TempDir()
	files := map[string]string{
		"profiles/work/package.json":                                   `{"name":"dsh-profile-work","private":true,"dependencies":{},"dsh":{"profile":{"bundles":[` + bundles + `],"patchReload":"live"}}}`,
		"profiles/work/cordis.patch.yml":                               "# Your own patches.\n# They apply after those of the bundles.\n# See the documentation.\n" + patch,
		"profiles/work/cordis.yml":                                     "# rewritten at each start\n[]\n",
		"profiles/work/pnpm-workspace.yaml":                            "packages: [.]\nnodeLinker: hoisted\nautoInstallPeers: false\n",
		"profiles/node_modules/@deepseek-ai/dsh-base/package.json":     `{"name":"@deepseek-ai/dsh-base","dsh":{"bundle":{"patch":"cordis.patch.yml"}}}`,
		"profiles/node_modules/@deepseek-ai/dsh-base/cordis.patch.yml": "- insert:\n    - {id: subprocess, name: '@deepseek-ai/dsh-subprocess-local'}\n    - {id: fs-sandbox, name: '@deepseek-ai/dsh-fs-sandbox'}\n    - {id: sandbox-policy, name: '@deepseek-ai/dsh-sandbox-policy', config: {mode: workspace-write, workspaceRoot: /srv/work}}\n",
		"profiles/work/node_modules/dsh-file-mount/package.json":       `{"name":"dsh-file-mount","dsh":{"bundle":{"patch":["cordis.patch.yml"]},"client":"x"}}`,
		"profiles/work/node_modules/dsh-file-mount/cordis.patch.yml":   "- insert:\n    - id: file-mount\n      name: dsh-file-mount\n      config: {enabled: true}\n",
		"profiles/work/node_modules/@upstash/dsh-box/package.json":     `{"name":"@upstash/dsh-box","dsh":{"bundle":{"patch":"./cordis.patch.yml"}}}`,
		"profiles/work/node_modules/@upstash/dsh-box/cordis.patch.yml": "- {id: subprocess, name: '@deepseek-ai/dsh-subprocess-local', disabled: true}\n- insert:\n    - {id: box, name: '@upstash/dsh-box', config: {cwd: /workspace/home}}\n    - {id: subprocess-box, name: '@upstash/dsh-box/subprocess'}\n",
	}
	for name, content := range more {
		files[name] = content
	}
	for name, content := range files {
		path := filepath.Join(home, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// Case 139: what profiles of dsh mean here. What is written is a valid profile,
// and no literal key is in any output.
func TestImportDsh(t *testing.T) {
	const base = `"@deepseek-ai/dsh-base"`
	fence := "fence:\n  mode: \"workspace-write\"\n  workspaceRoot: \"/srv/work\"\n"
	for name, c := range map[string]struct {
		bundles, patch, want string
		left, notes          []string
	}{
		"local": {base, "[]\n", "backend: local\n" + fence, nil, nil},
		"E2B rows": {base, `- {id: subprocess, name: '@deepseek-ai/dsh-subprocess-local', disabled: yes}
- {id: fs-sandbox, disabled: true}
- insert:
    - id: e2b
      name: '@deepseek-ai/dsh-e2b'
      config: {cwd: /home/user/work, timeoutMs: 600000, apiKey: !!js process.env.MY_E2B}
    - {id: fs-e2b, name: '@deepseek-ai/dsh-fs-e2b'}
    - {id: subprocess-e2b, name: '@deepseek-ai/dsh-subprocess-e2b'}
`, "backend: e2b\nconfig:\n  create: true\n  apiKey: ${MY_E2B}\n  cwd: \"/home/user/work\"\n  timeoutMs: 600000\n", nil, nil},
		"dsh-box": {base + `,"@upstash/dsh-box"`, "- {id: box, config: {runtime: python, apiKey: sk-literal, mystery: 1}}\n",
			"splitWorld: true\nrows:\n  - id: files\n    name: local\n    provides: [fs]\n    config: {cwd: .}\n  - id: processes\n    name: box\n    provides: [exec]\n    config:\n" +
				"      create: true\n      apiKey: ${UPSTASH_BOX_API_KEY}\n      runtime: \"python\"\n      cwd: /workspace/home\n" + fence,
			[]string{"row box: config.mystery"}, []string{"row box: config.apiKey holds a literal key", "a split world"}},
		"dsh-file-mount with config": {base + `,"dsh-file-mount"`, "- id: file-mount\n  config: {enabled: true, ttlMs: 60000, excludeGlobs: ['*.lock'], colour: red, statsFile: !!js dshHomePath('s')}\n",
			"backend: local\n" + fence + "mount:\n  enabled: true\n  excludeGlobs: [\"*.lock\"]\n  ttlMs: 60000\n",
			[]string{"row file-mount: config.colour", "row file-mount: config.statsFile is evaluated by dsh"}, nil},
		"unknown rows and patches that miss": {base, "- insert: [{id: x, name: dsh-other, config: {a: 1}}, {id: y, name: dsh-more, disabled: !!js process.env.Y}]\n- {id: nosuch, config: {}}\n- {id: subprocess, name: another, disabled: true}\n",
			"backend: local\n" + fence, []string{"row x (dsh-other)", "row y (dsh-more)", "row y: disabled is evaluated", `entry "nosuch" not found`, `entry "subprocess" is`}, nil},
		"a bundle that is not there": {base + `,"gone"`, "[]\n", "backend: local\n" + fence, nil, []string{"the bundle gone is not installed"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ImportDsh(dshHome(t, c.bundles, c.patch, nil), "work")
			if err != nil {
				t.Fatal(err)
			}
			if want := "# Taken over from a profile of dsh.\nversion: 1\n" + c.want; string(got.Content) != want {
				t.Errorf("got\n%s\nwant\n%s", got.Content, want)
			}
			holdsAll(t, "left", got.Left, c.left)
			holdsAll(t, "notes", got.Notes, c.notes)
			if all := string(got.Content) + strings.Join(got.Left, "") + strings.Join(got.Notes, ""); strings.Contains(all, "sk-literal") {
				t.Errorf("the literal key is in the output: %s", all)
			}
		})
	}
}

func holdsAll(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %q, want %q", what, got, want)
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%s: %q does not hold %q", what, got[i], want[i])
		}
	}
}

// What cannot be read is refused, and a patch that leads out of its bundle is
// not followed (plugins.md 2).
func TestImportDshRefusals(t *testing.T) {
	_, err := ImportDsh(t.TempDir(), "work")
	if fault.CodeOf(err) != fault.ProfileNotFound {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"", "..", "a/b"} {
		if _, err := ImportDsh(t.TempDir(), name); fault.CodeOf(err) != fault.ProfileInvalid {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, patch := range []string{"{}\n", "a: [\n", ""} {
		if _, err := ImportDsh(dshHome(t, "", "", map[string]string{"profiles/work/cordis.patch.yml": patch}), "work"); fault.CodeOf(err) != fault.ProfileInvalid {
			t.Errorf("%q: %v", patch, err)
		}
	}
	got, err := ImportDsh(dshHome(t, `"evil"`, "[]\n", map[string]string{
		"profiles/work/node_modules/evil/package.json": `{"dsh":{"bundle":{"patch":"../../../../outside.yml"}}}`,
		"outside.yml": "- insert: [{id: x, name: dsh-other}]\n",
	}), "work")
	if err != nil || len(got.Left) != 1 || !strings.Contains(got.Left[0], "lies outside") {
		t.Errorf("%+v %v", got, err)
	}
}
