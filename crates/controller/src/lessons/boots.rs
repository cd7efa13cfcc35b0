//! A mark of all in a class that decides what its machines boot, and so what their kubelets leave for pods. Pure.

use scarpenter_api::ScarpenterNodeClassSpec;
use scarpenter_api::nodeclass::Join;
use serde_json::json;

/// Annotation of a claim: the mark of its class when it was made.
pub(crate) const ANNOTATION: &str = "scarpenter.sparecores.com/boots";

/// The mark of a class: what it buys where, and how long it waits, is not in it.
pub(crate) fn mark(spec: &ScarpenterNodeClassSpec) -> String {
    let Join { method, kubernetes_version, sysext_base_url, sysext_hashes, kubelet, .. } = &spec.join;
    let settings: Vec<_> = spec.vendors.iter().map(|(vendor, own)| (vendor, &own.settings)).collect();
    let all = json!([
        spec.image,
        spec.ignition,
        spec.boot_disk,
        settings,
        method,
        kubernetes_version,
        sysext_base_url,
        sysext_hashes,
        kubelet,
        spec.mesh.as_ref().map(|mesh| &mesh.tailscale),
    ]);
    format!("{:016x}", fnv(all.to_string().as_bytes()))
}

/// FNV-1a of 64 bits: the same in every version of every program.
fn fnv(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_of_its_authors() {
        assert_eq!(fnv(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn only_what_decides_the_machine_changes_the_mark() {
        let class = ScarpenterNodeClassSpec::default();
        let mut elsewhere = class.clone();
        elsewhere.vendors.entry("aws".to_owned()).or_default().regions.push("us-east-1".to_owned());
        let with_vendor = ScarpenterNodeClassSpec {
            vendors: [("aws".to_owned(), Default::default())].into(),
            ..class.clone()
        };
        assert_eq!(mark(&elsewhere), mark(&with_vendor), "regions do not matter");
        let mut reserved = class.clone();
        reserved.join.kubelet.max_pods = 50;
        assert_ne!(mark(&reserved), mark(&class));
        let mut meshed = class.clone();
        meshed.mesh = serde_json::from_value(json!({"headscale": {
            "url": "https://mesh.example.com", "user": "workers", "apiKeySecretRef": {"name": "n", "key": "k"},
        }}))
        .unwrap();
        assert_ne!(mark(&meshed), mark(&class));
        let mut disk = class.clone();
        disk.boot_disk.size_gib += 1;
        assert_ne!(mark(&disk), mark(&class));
    }
}
