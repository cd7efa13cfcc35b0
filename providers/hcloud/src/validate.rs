//! What stands in the way of a class, in words that a person can act on.

use scarpenter_core::offering::Arch;
use scarpenter_provider::request::{ClassCheck, PlacedImage, Problem, Severity};

use crate::api::Fault;
use crate::lookup::Missing;
use crate::provider::Hcloud;
use crate::settings::Settings;

const SETTINGS: &str = "vendors.hcloud.settings";

/// Problems of a class; a fault when nothing was learned.
pub(crate) async fn problems(plugin: &Hcloud, check: ClassCheck) -> Result<Vec<Problem>, Fault> {
    if let Err(fault) = plugin.api.has_token().await {
        return Ok(vec![error("", fault.of_other().message)]);
    }
    let locations = match plugin.api.locations().await {
        Ok(locations) => locations,
        Err(fault) => return denied(fault).map(|problem| vec![problem]),
    };
    let mut out: Vec<Problem> =
        check.regions.iter().filter_map(|region| unknown_region(region, &locations)).collect();
    match Settings::read(&check.settings) {
        Err(wrong) => out
            .extend(wrong.into_iter().map(|wrong| error(&format!("{SETTINGS}.{}", wrong.key), wrong.words))),
        Ok(settings) => {
            named(plugin, &settings, &mut out).await?;
            for image in &check.images {
                pictured(plugin, &settings, image, &mut out).await?;
            }
        }
    }
    if check.boot_disk_gib.is_some() {
        let words = "this vendor sells no sizes of boot disks: machines have the disk of their type";
        out.push(Problem { severity: Severity::Warning, ..error("bootDisk", words.to_owned()) });
    }
    Ok(out)
}

fn error(field: &str, message: String) -> Problem {
    Problem { field: field.to_owned(), region: None, severity: Severity::Error, message }
}

/// Credentials that do not work are a problem of the class; anything else says nothing about it.
fn denied(fault: Fault) -> Result<Problem, Fault> {
    let Fault::Refused(refused) = &fault else { return Err(fault) };
    if !matches!(refused.status, 401 | 403) || refused.code == "maintenance" {
        return Err(fault);
    }
    let words = format!(
        "the vendor does not take the API token ({}): make a new one with the permission \"Read & Write\" in the \
         project's Security page and give it to the plugin",
        refused.code
    );
    Ok(error("", words))
}

fn unknown_region(region: &str, locations: &[String]) -> Option<Problem> {
    if locations.iter().any(|location| location == region) {
        return None;
    }
    let words = format!("{region:?} is no location of this vendor: those are {}", locations.join(", "));
    Some(Problem { region: Some(region.to_owned()), ..error("vendors.hcloud.regions", words) })
}

async fn named(plugin: &Hcloud, settings: &Settings, out: &mut Vec<Problem>) -> Result<(), Fault> {
    let group: Vec<_> = settings.placement_group.iter().cloned().collect();
    let lists = [
        ("networks", "/networks", "network", &settings.networks),
        ("firewalls", "/firewalls", "firewall", &settings.firewalls),
        ("sshKeys", "/ssh_keys", "SSH key", &settings.ssh_keys),
        ("placementGroup", "/placement_groups", "placement group", &group),
    ];
    for (key, path, what, wanted) in lists {
        for one in wanted {
            let field = format!("{SETTINGS}.{key}");
            if let Ok(id) = one.parse() {
                if !plugin.api.has(path, id).await? {
                    out.push(error(&field, format!("this project has no {what} of the id {id}")));
                }
            } else {
                absent(plugin.lookup.id(&plugin.api, path, what, one).await, &field, Severity::Error, out)?;
            }
        }
    }
    Ok(())
}

/// A class that names no architecture may do with an image for one: the other is then only a warning.
async fn pictured(
    plugin: &Hcloud,
    settings: &Settings,
    placed: &PlacedImage,
    out: &mut Vec<Problem>,
) -> Result<(), Fault> {
    let archs = placed.arch.map_or(vec![Arch::Amd64, Arch::Arm64], |arch| vec![arch]);
    let mut missing = Vec::new();
    for arch in &archs {
        let found = plugin.lookup.image(&plugin.api, &placed.image, settings, *arch).await;
        absent(found.map(drop), "image", Severity::Error, &mut missing)?;
    }
    let some = missing.len() < archs.len();
    out.extend(missing.into_iter().map(|problem| {
        let severity = if some { Severity::Warning } else { Severity::Error };
        Problem { severity, region: placed.region.clone(), ..problem }
    }));
    Ok(())
}

fn absent<T>(
    found: Result<T, Missing>,
    field: &str,
    severity: Severity,
    out: &mut Vec<Problem>,
) -> Result<(), Fault> {
    match found {
        Ok(_) => Ok(()),
        Err(Missing::Absent(words)) => {
            out.push(Problem { severity, ..error(field, words) });
            Ok(())
        }
        Err(Missing::Fault(fault)) => Err(fault),
    }
}
