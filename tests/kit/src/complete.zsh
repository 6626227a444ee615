# Prints what an interactive zsh offers for the command line "$1", with "$2" before its own folders of functions.
zmodload zsh/zpty || exit 77
export FUNCTIONS=$2 OFFERED=$(mktemp) SETUP=$(mktemp)
cat >$SETUP <<'END'
PROMPT= fpath=($FUNCTIONS $fpath)
autoload -Uz compinit && compinit -D -u
compadd () {
  local -a hits
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  builtin compadd -A hits "$@"
  print -rl -- $hits >>$OFFERED
  builtin compadd "$@"
}
finish () { print -r -- --end-- >>$OFFERED; exit }
comppostfuncs=(finish)
bindkey '^I' complete-word
print -r -- --ready-- >>$OFFERED
END

await () {
  repeat 200; do
    [[ "$(<$OFFERED)" == *$1* ]] && return
    sleep 0.05
  done
}

zpty -b shell zsh -f -i
zpty -w shell 'source $SETUP'
await --ready--
zpty -n -w shell "$1"$'\t'
await --end--
zpty -d shell
grep -v -e '^--end--$' -e '^--ready--$' -e '^$' $OFFERED
rm -f $OFFERED $SETUP
