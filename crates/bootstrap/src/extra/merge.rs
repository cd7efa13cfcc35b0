//! Two documents into one.

use ignition_config::v3_3;

use super::Error;
use super::nodes::{self, Node, clash};

/// Where systemd reads what a document says of units.
const UNITS: &str = "/etc/systemd/system";

/// `ours` with all of `theirs` in it.
pub(super) fn merge(mut ours: v3_3::Config, theirs: v3_3::Config) -> Result<v3_3::Config, Error> {
    let v3_3::Config { ignition, kernel_arguments, passwd, storage, systemd } = theirs;
    let units = systemd.and_then(|systemd| systemd.units).unwrap_or_default();
    let storage = storage.unwrap_or_default();
    check_paths(&ours, &storage)?;
    let v3_3::Ignition { config: _, proxy, security, timeouts, version: _ } = ignition;
    ours.ignition = v3_3::Ignition { proxy, security, timeouts, ..ours.ignition };
    ours.kernel_arguments = kernel_arguments;
    ours.passwd = passwd;
    merge_storage(ours.storage.get_or_insert_default(), storage);
    let mine = ours.systemd.get_or_insert_default().units.get_or_insert_default();
    for unit in units {
        match mine.iter_mut().find(|mine| mine.name == unit.name) {
            Some(mine) => merge_unit(mine, unit)?,
            None => mine.push(unit),
        }
    }
    Ok(ours)
}

fn merge_storage(ours: &mut v3_3::Storage, theirs: v3_3::Storage) {
    let v3_3::Storage { directories, disks, files, filesystems, links, luks, raid } = theirs;
    ours.directories = directories;
    ours.disks = disks;
    ours.files.get_or_insert_default().extend(files.unwrap_or_default());
    ours.filesystems = filesystems;
    ours.links.get_or_insert_default().extend(links.unwrap_or_default());
    ours.luks = luks;
    ours.raid = raid;
}

/// Ours has no directories, so their files may not take the place of anything.
fn check_paths(ours: &v3_3::Config, theirs: &v3_3::Storage) -> Result<(), Error> {
    let unit_files = unit_files(ours);
    let mut mine: Vec<Node<'_>> = ours.storage.as_ref().map(nodes::of).unwrap_or_default();
    mine.extend(unit_files.iter().map(|(place, path)| Node {
        place: place.clone(),
        path,
        is_directory: false,
    }));
    for node in nodes::of(theirs) {
        if let Some(mine) = mine.iter().find(|mine| clash(mine, &node)) {
            let theirs = format!("{} {}", node.place, node.path);
            let ours = format!("{} {}", mine.place, mine.path);
            return Err(Error::Conflict { theirs, ours });
        }
    }
    Ok(())
}

/// The files that our units become.
fn unit_files(config: &v3_3::Config) -> Vec<(String, String)> {
    let units = config.systemd.iter().flat_map(|systemd| systemd.units.iter().flatten());
    let mut out = Vec::new();
    for unit in units {
        let place = format!("unit {}", unit.name);
        if unit.contents.is_some() || unit.mask == Some(true) {
            out.push((place.clone(), format!("{UNITS}/{}", unit.name)));
        }
        for dropin in unit.dropins.iter().flatten() {
            out.push((place.clone(), format!("{UNITS}/{}.d/{}", unit.name, dropin.name)));
        }
    }
    out
}

fn merge_unit(ours: &mut v3_3::Unit, theirs: v3_3::Unit) -> Result<(), Error> {
    let conflict = |what: &str| Error::Conflict {
        theirs: format!("{what} of unit {}", theirs.name),
        ours: format!("what unit {} has", theirs.name),
    };
    let masks = |unit: &v3_3::Unit| unit.mask == Some(true);
    let says =
        |unit: &v3_3::Unit| unit.contents.is_some() || unit.enabled == Some(true) || unit.dropins.is_some();
    if (masks(&theirs) && says(ours)) || (masks(ours) && (says(&theirs) || theirs.mask == Some(false))) {
        return Err(conflict("the mask or contents"));
    }
    if theirs.contents.is_some() && ours.contents.is_some() {
        return Err(conflict("the contents"));
    }
    if theirs.enabled.is_some() && ours.enabled.is_some() && theirs.enabled != ours.enabled {
        return Err(conflict("the enabling"));
    }
    for dropin in theirs.dropins.iter().flatten() {
        if ours.dropins.iter().flatten().any(|mine| mine.name == dropin.name) {
            return Err(conflict(&format!("drop-in {}", dropin.name)));
        }
    }
    ours.mask = ours.mask.or(theirs.mask);
    ours.enabled = ours.enabled.or(theirs.enabled);
    ours.contents = ours.contents.take().or(theirs.contents);
    if let Some(dropins) = theirs.dropins {
        ours.dropins.get_or_insert_default().extend(dropins);
    }
    Ok(())
}
