//! A type's facts in words: what there is to say, nothing where nothing is known.

use scarpenter_core::offering::{Hardware, InstanceType};

/// Name and words of each fact that is known.
pub(super) fn facts(instance_type: &InstanceType) -> Vec<(&'static str, String)> {
    let hardware = &*instance_type.hardware;
    let all = [
        ("family", instance_type.family.clone()),
        ("architecture", instance_type.arch.as_str().to_owned()),
        ("cpu", cpu(instance_type)),
        ("processor", processor(instance_type)),
        ("cache a core", caches(hardware)),
        ("cache L3", l3(hardware)),
        ("cpu flags", hardware.cpu_flags.iter().collect::<Vec<_>>().join(" ")),
        ("memory", memory(instance_type)),
        ("gpu", gpu(instance_type)),
        ("disk", disk(instance_type)),
        ("network", network(hardware)),
        (
            "public IPv4",
            if hardware.ipv4 > 0 { format!("{} in the price", hardware.ipv4) } else { String::new() },
        ),
        (
            "starts in",
            hardware.start_millis.map(|millis| format!("{} s", tenths(millis, 1000))).unwrap_or_default(),
        ),
        (
            "retiring",
            if hardware.retiring { "its vendor will stop selling it".to_owned() } else { String::new() },
        ),
    ];
    all.into_iter().filter(|(_, words)| !words.is_empty()).collect()
}

fn cpu(of: &InstanceType) -> String {
    let cores = of.hardware.cpu_cores.map(|cores| format!("{cores} cores"));
    let allocation = Some(of.cpu_allocation.clone()).filter(|words| !words.is_empty());
    let more: Vec<String> = cores.into_iter().chain(allocation).collect();
    join(&[format!("{} vCPU", of.cpu), more.join(", ")], ", ")
}

fn processor(of: &InstanceType) -> String {
    let hardware = &of.hardware;
    let mut names: Vec<&str> = Vec::new();
    // A model often begins with its family, and a family with its maker.
    for name in [of.cpu_manufacturer.as_str(), &hardware.cpu_family, &hardware.cpu_model] {
        if names.last().is_some_and(|last| name.starts_with(last)) {
            names.pop();
        }
        names.push(name);
    }
    names.retain(|name| !name.is_empty());
    let clock = hardware.cpu_mhz.map(|mhz| format!("{} GHz", tenths(mhz, 1000))).unwrap_or_default();
    join(&[names.join(" "), clock], ", ")
}

fn caches(hardware: &Hardware) -> String {
    let caches = [("L1d", hardware.l1d_kib), ("L1i", hardware.l1i_kib), ("L2", hardware.l2_kib)];
    let words = caches.into_iter().filter_map(|(name, kib)| Some(format!("{name} {}", size_kib(kib?))));
    words.collect::<Vec<_>>().join(", ")
}

fn l3(hardware: &Hardware) -> String {
    let one = hardware.l3_kib.map(size_kib).unwrap_or_default();
    let all = hardware.l3_total_kib.map(|kib| format!("{} in all", size_kib(kib))).unwrap_or_default();
    join(&[one, all], ", ")
}

fn memory(of: &InstanceType) -> String {
    let shown = of.hardware.memory_actual_mib.map(|mib| format!("the machine shows {mib} MiB"));
    join(&[format!("{} MiB", of.memory_mib), shown.unwrap_or_default()], ", ")
}

fn gpu(of: &InstanceType) -> String {
    let hardware = &of.hardware;
    if hardware.gpu_ten_thousandths == 0 {
        return String::new();
    }
    let count = f64::from(hardware.gpu_ten_thousandths) / 10_000.0;
    let name = join(&[hardware.gpu_manufacturer.to_string(), hardware.gpu_model.to_string()], " ");
    let memory = hardware.gpu_memory_total_mib.map(|mib| format!("{mib} MiB in all")).unwrap_or_default();
    let part = if of.gpu_count == 0 { "a part of one, so no pod can ask for it" } else { "" };
    join(&[format!("{count} x {name}"), memory, part.to_owned()], ", ")
}

fn disk(of: &InstanceType) -> String {
    let hardware = &of.hardware;
    if hardware.local_storage_gb == 0 {
        return String::new();
    }
    let count = if hardware.local_storages > 1 {
        format!("in {} disks", hardware.local_storages)
    } else {
        String::new()
    };
    let boot = if of.storage_gb > 0 { "the machine starts from it" } else { "" };
    join(
        &[
            format!("{} GB", hardware.local_storage_gb),
            hardware.storage_type.to_string(),
            count,
            boot.to_owned(),
        ],
        ", ",
    )
}

fn network(hardware: &Hardware) -> String {
    let gbit = |mbps: u32| format!("{} Gbit/s", tenths(mbps, 1000));
    let base = hardware.network_baseline_mbps.map(gbit).unwrap_or_default();
    let peak = hardware.network_peak_mbps.map(|mbps| format!("at most {}", gbit(mbps))).unwrap_or_default();
    join(&[base, peak], ", ")
}

fn join(parts: &[String], between: &str) -> String {
    let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    parts.join(between)
}

fn size_kib(kib: u32) -> String {
    if kib >= 1024 && kib.is_multiple_of(1024) { format!("{} MiB", kib / 1024) } else { format!("{kib} KiB") }
}

/// `number` in units of so many, with as many digits behind the point as it needs, two at most.
fn tenths(number: u32, unit: u32) -> String {
    let text = format!("{:.2}", f64::from(number) / f64::from(unit));
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
