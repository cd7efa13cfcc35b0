//! GPU types that Karpenter's provider for Azure knows, after `Standard_`.

/// A group in braces stands for each of its words.
const GPUS: &[&str] = &[
    "NC{8,16,32}ads_A10_v4",
    "NC{24,48,96}ads_A100_v4",
    "NC{4,8,16,64}as_T4_v3",
    "NC40ads_H100_v5",
    "NC80adis_H100_v5",
    "ND96asr_v4",
    "ND{112,120}asr_A100_v4",
    "ND{96,112,120}amsr_A100_v4",
    "ND96ams_v4",
    "ND96ams{,f,rf}_A100_v4",
    "ND96ams_A100_flex_v4",
    "NV{6,12,18,36,72}ads_A10_v5",
    "NV36adms_A10_v5",
    "NC{6,12,24,24r}",
    "NC{6s,12s,24s,24rs}_v{2,3}",
    "ND{6s,12s,24s,24rs}",
    "ND40rs_v2",
    "ND40s_v3",
    "NV{6,12,24,24r}",
    "NV{12s,24s,48s}_v3",
    "ND96{isr,is,isf,isrf}_H{100,200}_v5",
    "ND96is_{noib,flex}_H100_v5",
    "ND128isr_NDR_GB200_v6",
    "ND128isr_GB300_v6",
    "NC{24lds,36ds,36lds,72ds,72lds,144ds,144lds,288ds,288lds}_xl_RTXPRO6000BSE_v6",
    "NV{4,8,12,24}ads_V710_v5",
    "NV28adms_V710_v5",
    "ND96{isr,is}_MI300X_v5",
];

/// Whether a type is one of them; letter case and `_Promo` at its end do not count.
pub(super) fn is_known_gpu(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let Some(name) = name.strip_prefix("standard_") else { return false };
    let name = name.strip_suffix("_promo").unwrap_or(name);
    GPUS.iter().any(|pattern| matches(&pattern.to_ascii_lowercase(), name))
}

fn matches(pattern: &str, name: &str) -> bool {
    let Some((before, rest)) = pattern.split_once('{') else { return pattern == name };
    let (words, after) = rest.split_once('}').unwrap_or((rest, ""));
    let Some(name) = name.strip_prefix(before) else { return false };
    words.split(',').any(|word| name.strip_prefix(word).is_some_and(|name| matches(after, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_type_is_known_by_its_name() {
        for (name, known) in [
            ("Standard_NC24ads_A100_v4", true),
            ("Standard_nc24ADS_a100_v4", true),
            ("Standard_NC24ads_A100_v5", false),
            ("Standard_NC6s_v3", true),
            ("Standard_NC6s_v4", false),
            ("Standard_NV12s_v3_Promo", true),
            ("Standard_ND96ams_A100_v4", true),
            ("Standard_ND96amsrf_A100_v4", true),
            ("Standard_NC", false),
            ("NC6", false),
        ] {
            assert_eq!(is_known_gpu(name), known, "{name}");
        }
    }
}
