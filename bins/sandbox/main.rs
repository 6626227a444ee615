//! `git arborist sandbox`.

fn main() -> std::process::ExitCode {
    git_arborist::entry::main(git_arborist::sandbox::run)
}
