//! `git arborist`: finds the command and becomes it.

fn main() -> std::process::ExitCode {
    git_arborist::arborist::main()
}
