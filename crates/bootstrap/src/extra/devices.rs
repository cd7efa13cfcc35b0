//! Disks, RAID, file systems and LUKS.

use ignition_config::v3_3;

use super::check::resource;
use super::nodes::check_path;
use super::{Error, invalid, unique};

pub(super) fn check(storage: &v3_3::Storage) -> Result<(), Error> {
    let disks = || storage.disks.iter().flatten();
    let filesystems = || storage.filesystems.iter().flatten();
    let raid = || storage.raid.iter().flatten();
    let luks = || storage.luks.iter().flatten();
    unique("storage.disks", disks().map(|disk| disk.device.as_str()))?;
    unique("storage.filesystems", filesystems().map(|filesystem| filesystem.device.as_str()))?;
    unique("storage.raid", raid().map(|array| array.name.as_str()))?;
    unique("storage.luks", luks().map(|volume| volume.name.as_str()))?;
    disks().enumerate().try_for_each(|(at, disk)| check_disk(&format!("storage.disks.{at}"), disk))?;
    filesystems()
        .enumerate()
        .try_for_each(|(at, f)| check_filesystem(&format!("storage.filesystems.{at}"), f))?;
    raid().enumerate().try_for_each(|(at, array)| check_raid(&format!("storage.raid.{at}"), array))?;
    luks().enumerate().try_for_each(|(at, volume)| check_luks(&format!("storage.luks.{at}"), volume))
}

fn check_disk(place: &str, disk: &v3_3::Disk) -> Result<(), Error> {
    check_path(place, &disk.device)?;
    let partitions = || disk.partitions.iter().flatten();
    for partition in partitions() {
        check_partition(place, partition)?;
    }
    let numbers: Vec<String> =
        partitions().filter_map(|p| p.number.filter(|n| *n != 0)).map(|n| n.to_string()).collect();
    unique(&format!("{place}.partitions"), numbers.iter().map(String::as_str))?;
    unique(&format!("{place}.partitions"), partitions().filter_map(|p| p.label.as_deref()))?;
    let any_number = partitions().any(|p| p.number.unwrap_or_default() == 0);
    if any_number && partitions().any(|p| p.should_exist == Some(false)) {
        return Err(invalid(place, "has a partition that should not exist beside one without a number"));
    }
    let spans: Vec<(i64, i64)> = partitions().filter_map(span).collect();
    let meet =
        |(at, one): (usize, &(i64, i64))| spans[..at].iter().any(|two| one.0 <= two.1 && two.0 <= one.1);
    if spans.iter().enumerate().any(meet) {
        return Err(invalid(place, "has partitions that overlap"));
    }
    Ok(())
}

/// First and last MiB where the document says both.
fn span(partition: &v3_3::Partition) -> Option<(i64, i64)> {
    let start = partition.start_mib.filter(|start| *start != 0)?;
    let size = partition.size_mib?;
    Some((start, if size == 0 { start } else { start + size - 1 }))
}

fn check_partition(place: &str, partition: &v3_3::Partition) -> Result<(), Error> {
    let place = format!("{place}.partitions");
    let label = partition.label.as_deref();
    if partition.number.unwrap_or_default() == 0 && label.is_none() {
        return Err(invalid(place, "has one with neither a number nor a label"));
    }
    if label.is_some_and(|label| label.len() > 36 || label.contains(':')) {
        return Err(invalid(place, "has a label of more than 36 characters or with a colon"));
    }
    let described = label.is_some()
        || partition.type_guid.as_deref().is_some_and(|guid| !guid.is_empty())
        || partition.guid.as_deref().is_some_and(|guid| !guid.is_empty())
        || partition.start_mib.is_some()
        || partition.size_mib.is_some();
    if partition.should_exist == Some(false) && described {
        return Err(invalid(place, "has one that should not exist, and yet is described"));
    }
    if [&partition.guid, &partition.type_guid].into_iter().flatten().any(|guid| !is_guid(guid)) {
        return Err(invalid(place, "has a GUID that is not 8-4-4-4-12 hex digits"));
    }
    Ok(())
}

fn is_guid(guid: &str) -> bool {
    let lengths: Vec<usize> = guid.split('-').map(str::len).collect();
    guid.is_empty()
        || (lengths == [8, 4, 4, 4, 12] && guid.chars().all(|c| c == '-' || c.is_ascii_hexdigit()))
}

fn check_filesystem(place: &str, filesystem: &v3_3::Filesystem) -> Result<(), Error> {
    check_path(&format!("{place}.device"), &filesystem.device)?;
    let text = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
    if let Some(path) = filesystem.path.as_deref().filter(|path| !path.is_empty()) {
        check_path(&format!("{place}.path"), path)?;
    }
    let longest = match filesystem.format.as_deref().unwrap_or_default() {
        "" => {
            let more = text(&filesystem.path)
                || text(&filesystem.label)
                || text(&filesystem.uuid)
                || filesystem.wipe_filesystem == Some(true)
                || filesystem.options.iter().chain(&filesystem.mount_options).flatten().next().is_some();
            return if more { Err(invalid(place, "says much, but no format")) } else { Ok(()) };
        }
        "ext4" => 16,
        "btrfs" => 256,
        "xfs" => 12,
        "swap" => 15,
        "vfat" => 11,
        "none" => usize::MAX,
        _ => return Err(invalid(place, "has a format that is not ext4, btrfs, xfs, swap, vfat or none")),
    };
    if filesystem.label.as_deref().is_some_and(|label| label.len() > longest) {
        return Err(invalid(place, "has a label that is too long for its format"));
    }
    Ok(())
}

fn check_raid(place: &str, array: &v3_3::Raid) -> Result<(), Error> {
    let devices = || array.devices.iter().flatten();
    match array.level.as_deref().unwrap_or_default() {
        "linear" | "raid0" | "0" | "stripe" if array.spares.unwrap_or_default() != 0 => {
            return Err(invalid(place, "has spares at a level that takes none"));
        }
        "linear" | "raid0" | "0" | "stripe" | "raid1" | "1" | "mirror" | "raid4" | "4" | "raid5" | "5"
        | "raid6" | "6" | "raid10" | "10" => {}
        _ => return Err(invalid(place, "has no RAID level")),
    }
    if devices().next().is_none() {
        return Err(invalid(place, "has no devices"));
    }
    unique(place, devices().map(String::as_str))?;
    devices().try_for_each(|device| check_path(place, device))
}

fn check_luks(place: &str, volume: &v3_3::Luks) -> Result<(), Error> {
    if volume.name.contains('/') {
        return Err(invalid(place, "has a name with a slash"));
    }
    if volume.label.as_deref().is_some_and(|label| label.len() > 47) {
        return Err(invalid(place, "has a label of more than 47 characters"));
    }
    check_path(place, volume.device.as_deref().unwrap_or_default())?;
    if let Some(key) = &volume.key_file {
        resource(place, key)?;
    }
    let Some(clevis) = &volume.clevis else { return Ok(()) };
    for tang in clevis.tang.iter().flatten() {
        let web =
            tang.url.as_deref().is_some_and(|url| url.starts_with("https://") || url.starts_with("http://"));
        if !web || tang.thumbprint.as_deref().is_none_or(str::is_empty) {
            return Err(invalid(place, "has a tang server without an http(s) URL or without a thumbprint"));
        }
    }
    let Some(custom) = &clevis.custom else { return Ok(()) };
    let filled = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
    match custom.pin.as_deref().unwrap_or_default() {
        "" if !filled(&custom.config) && custom.needs_network != Some(true) => Ok(()),
        "tpm2" | "tang" | "sss" if !filled(&custom.config) => {
            Err(invalid(place, "has a custom clevis pin without its config"))
        }
        "tpm2" | "tang" | "sss" => {
            let others = clevis.tang.iter().flatten().next().is_some()
                || clevis.tpm2 == Some(true)
                || clevis.threshold.unwrap_or_default() != 0;
            if others { Err(invalid(place, "has a custom clevis pin beside others")) } else { Ok(()) }
        }
        _ => Err(invalid(place, "has a custom clevis pin that is not tpm2, tang or sss")),
    }
}
