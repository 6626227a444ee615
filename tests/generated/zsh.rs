//! Completion for zsh, for `git-arborist` itself and for `git arborist` through zsh's own completion of git.

use git_arborist::catalog::VERBS;

use crate::shape::{Choice, Kind, Operand, Shape, Value};

const FRAME: &str = include_str!("completion.zsh");

pub(crate) fn completion(shapes: &[Shape]) -> String {
    let functions: Vec<String> =
        shapes.iter().flat_map(Shape::walk).map(|(path, shape)| function(&path, shape)).collect();
    FRAME
        .replace("    @VERBS@\n", &descriptions(VERBS.iter().map(|verb| (verb.name, verb.about))))
        .replace("@FUNCTIONS@\n", &functions.join("\n"))
}

/// `name:what it does` for `_describe`, a line each.
fn descriptions<'a>(commands: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    commands.map(|(name, about)| format!("    {}\n", quoted(&format!("{name}:{about}")))).collect()
}

fn function(path: &str, shape: &Shape) -> String {
    let name = format!("__git-arborist_{}", path.replace(' ', "_"));
    let mut specs: Vec<String> = shape.options.iter().flat_map(option).collect();
    let alone = |name: &str| {
        let specs: Vec<String> = specs.iter().cloned().chain(shape.operands.iter().map(operand)).collect();
        format!("{name} () {{\n  _arguments -s -S \\\n    {}\n}}\n", specs.join(" \\\n    "))
    };
    if shape.commands.is_empty() {
        return alone(&name);
    }
    // _arguments takes only one definition for the rest of the words. So the first word, which is a command or an
    // operand, decides what the others are.
    let below = format!(" _call_function ret {name}_$words[1]");
    let (operands, first, rest) = match shape.operands.is_empty() {
        true => (String::new(), String::new(), below),
        false => {
            let operands = alone(&format!("{name}-operands")) + "\n";
            let first = shape.operands.iter().filter_map(|operand| offer(&operand.value.kind));
            let first = first.map(|offer| format!("\n    {offer} && ret=0")).collect();
            let rest = format!(
                "\n    if (( $+functions[{name}_$words[1]] )); then\n     {below}\n    else\n      {name}-operands && ret=0\n    fi"
            );
            (operands, first, rest)
        }
    };
    specs.extend(["'(-): :->command'".into(), "'(-)*:: :->arguments'".into()]);
    format!(
        "{operands}{name} () {{
  local curcontext=$curcontext state line ret=1
  local -A opt_args
  local -a commands=(
{}  )
  _arguments -C -s -S \\
    {} && ret=0
  case $state in
  (command) _describe -t commands command commands && ret=0{first} ;;
  (arguments){rest} ;;
  esac
  return ret
}}
",
        descriptions(shape.commands.iter().map(|below| (below.name.as_str(), below.about.as_str()))),
        specs.join(" \\\n    ")
    )
}

/// One line for each spelling; a spelling rules out the other.
fn option(choice: &Choice) -> Vec<String> {
    let short = choice.short.map(|short| format!("-{short}"));
    let long = choice.long.as_ref().map(|long| format!("--{long}"));
    let spellings: Vec<&String> = short.iter().chain(&long).collect();
    let all = spellings.iter().map(|spelling| spelling.as_str()).collect::<Vec<_>>().join(" ");
    let before = match choice {
        Choice { repeats: true, .. } => "*".to_owned(),
        Choice { long: Some(long), .. } if long == "help" => "(- *)".to_owned(),
        _ => format!("({all})"),
    };
    let line = |spelling: &&String| {
        let joint = match &choice.value {
            Some(_) if spelling.starts_with("--") => "=",
            Some(_) => "+",
            None => "",
        };
        let value = choice.value.as_ref().map(|value| format!(":{}", action(value))).unwrap_or_default();
        quoted(&format!("{before}{spelling}{joint}[{}]{value}", escaped(&choice.help)))
    };
    spellings.iter().map(line).collect()
}

fn operand(operand: &Operand) -> String {
    let many = if operand.repeats { "*" } else { "" };
    let optional = if operand.required || operand.repeats { ":" } else { "::" };
    quoted(&format!("{many}{optional}{}", action(&operand.value)))
}

/// The command that offers values of this kind, if there are any to offer.
fn offer(kind: &Kind) -> Option<String> {
    Some(match kind {
        Kind::Task => "__git-arborist-tasks".to_owned(),
        Kind::Branch | Kind::Revision => "__git-arborist-branches".to_owned(),
        Kind::Session => "__git-arborist-sessions".to_owned(),
        Kind::File => "_files".to_owned(),
        Kind::Folder => "_directories".to_owned(),
        Kind::OneOf(words) => format!("compadd -- {}", words.join(" ")),
        Kind::Text => return None,
    })
}

fn action(value: &Value) -> String {
    let action = match &value.kind {
        Kind::Task => "__git-arborist-tasks".to_owned(),
        Kind::Branch | Kind::Revision => "__git-arborist-branches".to_owned(),
        Kind::Session => "__git-arborist-sessions".to_owned(),
        Kind::File => "_files".to_owned(),
        Kind::Folder => "_directories".to_owned(),
        Kind::OneOf(words) => format!("({})", words.join(" ")),
        Kind::Text => " ".to_owned(),
    };
    format!("{}:{action}", value.name.to_lowercase())
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]").replace(':', "\\:")
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
