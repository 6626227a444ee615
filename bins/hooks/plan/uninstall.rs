//! Plans how to remove a hook, so that everything is as before.

use arborist_core::git::DirPlace;

use super::{HookChange, HookPlan};
use crate::hooks::{
    block,
    site::HookSite,
    spot::{HookContent, HookFile},
};

/// How to remove a hook, wherever it is. Files that were edited by hand are left.
pub(in crate::hooks) fn plan_uninstall(site: &HookSite) -> HookPlan {
    let mut plan = HookPlan::new(site.event, Vec::new());
    let section = site.event.config_section();
    match site.config {
        HookContent::Ours(_) => {
            plan.steps.extend(
                ["command", "event"].map(|key| HookChange::Unset { key: format!("{section}.{key}") }),
            );
        }
        HookContent::Edited => plan.left.push(format!("'{section}.command' was edited")),
        HookContent::Absent | HookContent::Foreign => {}
    }
    if site.dir.reach != DirPlace::Outside {
        match &site.husky {
            Some(file) => match &site.husky_link {
                Some(link) if file.content.is_ours() => {
                    plan.left
                        .push(format!("'{}' is a link that leads out of the repository", link.display()));
                }
                _ => remove_block(&mut plan, file),
            },
            None => remove_script(&mut plan, &site.script, &site.kept),
        }
        plan.steps.extend(site.moved.iter().map(|moved| HookChange::Remove { path: moved.path.clone() }));
    }
    if let Some((script, kept)) = &site.elsewhere {
        remove_script(&mut plan, script, kept);
    }
    plan
}

fn remove_block(plan: &mut HookPlan, file: &HookFile) {
    match (&file.content, &file.bytes) {
        (HookContent::Ours(binary), Some(bytes)) => {
            let path = file.path.clone();
            plan.steps.push(match block::remove(bytes, &plan.event.block(binary)) {
                Some(bytes) => HookChange::Edit { path, bytes },
                None => HookChange::Remove { path },
            });
        }
        (HookContent::Edited, _) => {
            plan.left.push(format!("our lines in '{}' were edited", file.path.display()));
        }
        _ => {}
    }
}

fn remove_script(plan: &mut HookPlan, script: &HookFile, kept: &HookFile) {
    let restore = HookChange::Restore { from: kept.path.clone(), to: script.path.clone() };
    match script.content {
        HookContent::Ours(_) | HookContent::Absent if kept.bytes.is_some() => plan.steps.push(restore),
        HookContent::Ours(_) => plan.steps.push(HookChange::Remove { path: script.path.clone() }),
        HookContent::Edited => plan.left.push(format!("'{}' was edited", script.path.display())),
        // A manager has regenerated its hook, so the one that we set aside is only a copy.
        HookContent::Foreign if kept.bytes.is_some() && kept.bytes == script.bytes => {
            plan.steps.push(HookChange::Remove { path: kept.path.clone() });
        }
        HookContent::Foreign if kept.bytes.is_some() => plan.left.push(format!(
            "git arborist did not write '{}'; the earlier hook is still in '{}'",
            script.path.display(),
            kept.path.display()
        )),
        HookContent::Absent | HookContent::Foreign => {}
    }
}
