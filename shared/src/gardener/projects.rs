//! Programs that test projects, and what they print if there is no project.

/// Programs that test a project.
pub(super) struct ProjectKind {
    /// Their names.
    pub(super) programs: &'static [&'static str],
    /// The files of which at least one must exist. A name that starts with `*` is a suffix.
    pub(super) files: &'static [&'static str],
    /// What the programs print, in lower case, if there is none of these files.
    pub(super) messages: &'static [&'static str],
}

/// All kinds that are known.
pub(super) const PROJECTS: [ProjectKind; 13] = [
    ProjectKind { programs: &["cargo"], files: &["Cargo.toml"], messages: &["could not find `cargo.toml`"] },
    ProjectKind {
        programs: &["npm", "npx", "pnpm", "yarn", "bun"],
        files: &["package.json"],
        messages: &[
            "could not read package.json",
            "no package.json",
            "couldn't find a package.json",
            "could not find package.json",
            "package.json' does not exist",
            "package.json was not found",
        ],
    },
    ProjectKind {
        programs: &["deno"],
        files: &["deno.json", "deno.jsonc", "package.json"],
        messages: &["couldn't find deno.json", "no test modules found", "no config file found"],
    },
    ProjectKind {
        programs: &["go"],
        files: &["go.mod", "go.work"],
        messages: &["cannot find main module", "go.mod file not found", "no modules were found"],
    },
    ProjectKind {
        programs: &["mvn", "mvnw"],
        files: &["pom.xml"],
        messages: &["there is no pom in this directory"],
    },
    ProjectKind {
        programs: &["gradle", "gradlew"],
        files: &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"],
        messages: &["does not contain a gradle build"],
    },
    ProjectKind {
        programs: &["dotnet"],
        files: &["*.sln", "*.slnx", "*.csproj", "*.fsproj"],
        messages: &["msb1003", "does not contain a project or solution file"],
    },
    ProjectKind {
        programs: &["mix"],
        files: &["mix.exs"],
        messages: &["could not find a mix.project", "could not find an mix.project"],
    },
    ProjectKind {
        programs: &["bundle", "rake", "rspec"],
        files: &["Gemfile", "Rakefile"],
        messages: &["could not locate gemfile", "no rakefile found"],
    },
    ProjectKind {
        programs: &["composer", "phpunit"],
        files: &["composer.json", "phpunit.xml", "phpunit.xml.dist"],
        messages: &["could not find a composer.json", "could not read \"phpunit.xml"],
    },
    ProjectKind {
        programs: &["make", "gmake"],
        files: &["Makefile", "makefile", "GNUmakefile"],
        messages: &["no makefile found", "no rule to make target", "don't know how to make"],
    },
    ProjectKind {
        programs: &["just"],
        files: &["justfile", "Justfile", ".justfile"],
        messages: &["no justfile found"],
    },
    ProjectKind {
        programs: &["swift"],
        files: &["Package.swift"],
        messages: &["could not find package.swift"],
    },
];
