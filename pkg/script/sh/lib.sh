# Head of every program. $1 is the nonce; each other word is "=literal" or
# "%octal". The sources are joined to one line, hence the ends of lines.
word() { case $1 in =*) v=${1#=};; *) v=$(printf "%b." "${1#%}"); v=${v%.};; esac; };
fail() { printf "E%s\000%s\000" "$1" "$2"; exit 0; };
nl=; newline() { [ -n "$nl" ] || { nl=$(printf "%b." "\012"); nl=${nl%.}; }; };
