package remotefs

import (
	"path"
	"strings"
)

// Language gives the language that a file's name suggests, by the extension of
// its last segment, or "" (remotefs.md 15). A dot-file has none.
func Language(name string) string {
	base := path.Base(name)
	dot := strings.LastIndexByte(base, '.')
	if dot <= 0 {
		return ""
	}
	switch ext := strings.ToLower(base[dot+1:]); ext {
	case "ts", "tsx", "js", "jsx", "json", "py", "rb", "go", "rs", "java", "c", "cc", "cs", "swift", "php",
		"yaml", "toml", "ini", "mdx", "html", "css", "scss", "less", "sql", "xml", "lua":
		if ext == "cc" {
			return "cpp"
		}
		return ext
	case "mts", "cts":
		return "ts"
	case "mjs", "cjs":
		return "js"
	case "jsonc":
		return "json"
	case "h":
		return "c"
	case "cpp", "hpp", "cxx":
		return "cpp"
	case "kt":
		return "kotlin"
	case "sh", "bash", "zsh":
		return "sh"
	case "yml":
		return "yaml"
	case "md", "markdown":
		return "markdown"
	case "htm":
		return "html"
	}
	return ""
}
