//! `git arborist state`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(git_arborist::state::run)
}
