//! Whether a test command has anything to test yet: the files that its program needs.

use std::path::{Path, PathBuf};

/// Programs that test a project, and the files of which one has to be there. A name that begins with `*` is an ending.
const PROJECTS: [(&[&str], &[&str]); 13] = [
    (&["cargo"], &["Cargo.toml"]),
    (&["npm", "npx", "pnpm", "yarn", "bun"], &["package.json"]),
    (&["deno"], &["deno.json", "deno.jsonc", "package.json"]),
    (&["go"], &["go.mod", "go.work"]),
    (&["mvn", "mvnw"], &["pom.xml"]),
    (&["gradle", "gradlew"], &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"]),
    (&["dotnet"], &["*.sln", "*.slnx", "*.csproj", "*.fsproj"]),
    (&["mix"], &["mix.exs"]),
    (&["bundle", "rake", "rspec"], &["Gemfile", "Rakefile"]),
    (&["composer", "phpunit"], &["composer.json", "phpunit.xml", "phpunit.xml.dist"]),
    (&["make", "gmake"], &["Makefile", "makefile", "GNUmakefile"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["swift"], &["Package.swift"]),
];

/// What a package without tests says: npm without a script, and the script that `npm init` writes.
const SENTENCES: [&str; 2] = ["Missing script: \"test\"", "Error: no test specified"];

/// The project file that a command needs and does not find in `top`, if that is so.
pub(super) fn find_missing(command: &str, top: &Path) -> Option<&'static str> {
    let mut dir = top.to_owned();
    for part in command.split(['&', ';', '|', '\n']) {
        let is_variable = |word: &&str| word.contains('=') && !word.starts_with(['-', '=']);
        let mut words = part.split_whitespace().skip_while(is_variable);
        let Some(program) = words.next() else { continue };
        let program = program.rsplit('/').next().unwrap_or(program);
        if program == "cd" {
            let folder: PathBuf = words.next().unwrap_or_default().trim_matches(['"', '\'']).into();
            dir = dir.join(folder);
            continue;
        }
        let known = PROJECTS.iter().find(|(programs, _)| programs.contains(&program));
        if let Some((_, files)) = known.filter(|(_, files)| !has_one(&dir, files)) {
            return files.first().map(|file| file.trim_start_matches('*'));
        }
    }
    None
}

/// Whether the output says that there are no tests yet.
pub(super) fn says_so(output: &str) -> bool {
    SENTENCES.iter().any(|words| output.contains(words))
}

fn has_one(dir: &Path, files: &[&str]) -> bool {
    files.iter().any(|file| match file.strip_prefix('*') {
        None => dir.join(file).is_file(),
        Some(ending) => std::fs::read_dir(dir).is_ok_and(|found| {
            found.flatten().any(|entry| entry.file_name().to_string_lossy().ends_with(ending))
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_needs_the_files_of_its_program_where_it_runs() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir(top.path().join("web")).unwrap();
        std::fs::write(top.path().join("web/package.json"), "{}").unwrap();
        for (command, missing) in [
            ("cargo test", Some("Cargo.toml")),
            ("CI=1 npm test", Some("package.json")),
            ("cd web && npm test", None),
            ("cd web && npm test && cargo test", Some("Cargo.toml")),
            ("./gradlew check", Some("build.gradle")),
            ("dotnet test", Some(".sln")),
            ("pytest -q", None),
            ("sh test.sh", None),
        ] {
            assert_eq!(find_missing(command, top.path()), missing, "{command}");
        }
    }
}
