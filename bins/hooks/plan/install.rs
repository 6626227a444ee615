//! Plans how to install a hook next to existing ones.

use arborist_core::{
    failure::{Exit, Failure},
    git::{DirPlace, GitVersion},
    process::shell_word,
};

use super::{HookChange, HookPlan};
use crate::hooks::{
    agent::leads_out,
    block,
    event::{HookEvent, Quoted},
    site::HookSite,
    spot::{HookContent, HookFile},
    status,
};

/// How to install a hook whose script finds the binary at `binary`.
pub(in crate::hooks) fn plan_install(site: &HookSite, binary: &Quoted) -> Result<HookPlan, Failure> {
    let plan = |steps| Ok(HookPlan::new(site.event, steps));
    if status::is_firing(site) && carried(site).is_none_or(|old| old == binary || *old == Quoted::none()) {
        return plan(Vec::new());
    }
    if site.git >= GitVersion::CONFIG_HOOKS && !site.script.content.is_ours() {
        return plan(config_steps(site, binary)?);
    }
    match &site.husky {
        Some(_) if site.event.is_for_receivers() => Err(Failure::new(
            Exit::Person,
            "husky runs no pre-receive hook: it belongs into the repository that is pushed to",
        )),
        Some(_) if let Some(link) = &site.husky_link => Err(leads_out(link)),
        Some(file) => plan(block_steps(site.event, file)?),
        None if site.dir.reach == DirPlace::Worktree => script_plan(site, &Quoted::none()),
        None => script_plan(site, binary),
    }
}

/// The path of the binary in the installed hook.
fn carried(site: &HookSite) -> Option<&Quoted> {
    let script = site.husky.as_ref().unwrap_or(&site.script);
    [&site.config, &script.content].into_iter().find_map(|content| match content {
        HookContent::Ours(binary) => Some(binary),
        _ => None,
    })
}

fn config_steps(site: &HookSite, binary: &Quoted) -> Result<Vec<HookChange>, Failure> {
    let section = site.event.config_section();
    if site.config == HookContent::Edited {
        return Err(edited(&format!("'{section}.command' in the repository's configuration")));
    }
    Ok(vec![
        HookChange::Set { key: format!("{section}.command"), value: site.event.check(binary) },
        HookChange::Set { key: format!("{section}.event"), value: site.event.as_str().into() },
    ])
}

fn block_steps(event: HookEvent, file: &HookFile) -> Result<Vec<HookChange>, Failure> {
    match file.content {
        HookContent::Edited => Err(edited(&format!("'{}'", file.path.display()))),
        HookContent::Ours(_) => Ok(Vec::new()),
        HookContent::Absent | HookContent::Foreign => {
            let bytes = block::insert(file.bytes.as_deref(), &event.block(&Quoted::none()));
            Ok(vec![HookChange::Edit { path: file.path.clone(), bytes }])
        }
    }
}

fn script_plan(site: &HookSite, binary: &Quoted) -> Result<HookPlan, Failure> {
    let path = site.script.path.clone();
    let place = HookChange::Place { path: path.clone(), bytes: site.event.script(binary).into_bytes() };
    match &site.script.content {
        HookContent::Edited => Err(edited(&format!("'{}'", path.display()))),
        HookContent::Absent | HookContent::Ours(_) => Ok(HookPlan::new(site.event, vec![place])),
        HookContent::Foreign if site.kept.bytes.is_some() && site.kept.bytes != site.script.bytes => {
            Err(Failure::new(
                Exit::Person,
                format!("'{}' is in the way of '{}'", site.kept.path.display(), path.display()),
            )
            .hint("an earlier hook was moved there; compare them, keep one, and install again"))
        }
        HookContent::Foreign => {
            let aside = HookChange::SetAside { from: path, to: site.kept.path.clone() };
            let mut plan = HookPlan::new(site.event, vec![aside, place]);
            plan.notes.extend(site.manager.and_then(|manager| manager.lasting(site.event)));
            Ok(plan)
        }
    }
}

fn edited(what: &str) -> Failure {
    Failure::new(Exit::Person, format!("{what} was edited, so it is left as it is"))
        .hint("undo the edit, or remove it by hand, and install again")
}

/// Refuses to write outside the repository, and names the lines that are to be added there for all missing hooks.
pub(in crate::hooks) fn refuse_outside(sites: &[HookSite]) -> Result<(), Failure> {
    let is_outside = |site: &&HookSite| {
        let goes_to_config = site.git >= GitVersion::CONFIG_HOOKS && !site.script.content.is_ours();
        site.dir.reach == DirPlace::Outside && !goes_to_config && !status::is_firing(site)
    };
    let sites: Vec<&HookSite> = sites.iter().filter(is_outside).collect();
    let Some(HookSite { dir, .. }) = sites.first() else { return Ok(()) };
    if dir.path.starts_with("/dev/null") {
        return Err(Failure::new(Exit::Person, "hooks are switched off here: core.hooksPath is '/dev/null'")
            .hint("see where that is set: git config --show-origin core.hooksPath"));
    }
    let (path, setting) = (dir.path.display(), dir.setting.as_ref());
    let from = setting
        .map_or_else(String::new, |setting| format!(" (core.hooksPath, {} configuration)", setting.scope));
    let mut failure = Failure::new(
        Exit::Person,
        format!("git reads hooks from '{path}'{from}, outside this repository; nothing was written there"),
    );
    for site in sites {
        let name = site.event.as_str();
        let file = shell_word(&site.script.path.display().to_string());
        let line = format!("git-arborist-hooks run {name} \"$@\" || exit");
        failure = match site.script.bytes {
            Some(_) => failure.hint(format!("add this line to {file}: {line}")),
            None if !dir.path.exists() => failure.hint(format!(
                "this folder does not exist; create it with the hook: mkdir -p {} && printf '#!/bin/sh\\n%s\\n' '{line}' >{file} && chmod +x {file}\nor use the hooks of this repository: git config --unset core.hooksPath && git arborist hooks install",
                shell_word(&path.to_string())
            )),
            None => failure.hint(format!(
                "create the hook: printf '#!/bin/sh\\n%s\\n' '{line}' >{file} && chmod +x {file}"
            )),
        };
    }
    Err(failure)
}
