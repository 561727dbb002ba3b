# read PATH FLAG LIMIT [INLINE]: the canonical path, the facts of the opened file, its
# content. A limit below zero is none. INLINE, if given, leaves larger content out.
at "$2" "$3"; word "$4";
if [ -f "$k" ]; then [ -r "$k" ] || {
    facts "$k" -L; token "$s";
    [ "$v" -ge 0 ] && [ "${z:-0}" -gt "$v" ] && fail toolarge "$z";
    fail sys "Permission denied";
  };
else
  facts "$k" -L; [ -n "$s" ] || { reach "$k"; fail notfound; }; fail notregular;
fi;
{
  s=$(stat -L -c "$F" -- /dev/fd/0 2>/dev/null) || facts "$k" -L;
  token "$s";
  case $m in 8???) ;; *) fail notregular;; esac;
  [ "$v" -ge 0 ] && [ "$z" -gt "$v" ] && fail toolarge "$z";
  printf "ok\000%s\000%s\000\000" "$k" "$s";
  [ -z "$5" ] || [ "$z" -le "${5#=}" ] || exit 0;
  exec cat;
} <"$k" 2>/dev/null;
fail notfound;
