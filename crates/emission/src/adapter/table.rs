//! The table. Facts are of October 2026, from the providers' published sources and definitions.

use super::{Adapter, Caution, Drop, When, Zones};

const BOTH: &[&str] = &["amd64", "arm64"];
const AMD64: &[&str] = &["amd64"];
const ON_DEMAND: &[&str] = &["on-demand"];
const WITH_SPOT: &[&str] = &["on-demand", "spot"];
const WITH_RESERVED: &[&str] = &["on-demand", "spot", "reserved"];
const REGION: &[&str] = &["topology.kubernetes.io/region"];

/// What most are like.
const PLAIN: Adapter = Adapter {
    id: "",
    node_class: ("", ""),
    vendor: "",
    architectures: BOTH,
    one_architecture: false,
    capacity: WITH_SPOT,
    one_capacity: false,
    pinned_capacity: false,
    zones: Zones::Asked,
    unsafe_keys: &[],
    universal_keys_only: false,
    old_core: false,
    auto_mode: false,
    drops: &[],
    cautions: &[],
};

const AZURE_NAMES: &[&str] = &["*[0-9]-[0-9]*", "Standard_DC*", "Standard_EC*", "Basic_*"];
const AZURE_TYPES: &[&str] = &[
    "Standard_A0",
    "Standard_A1",
    "Standard_A1_v2",
    "Standard_B1s",
    "Standard_B1ms",
    "Standard_F1",
    "Standard_F1s",
    "Standard_E64i_v3",
    "Standard_E64is_v3",
];

/// All that are known.
pub static ADAPTERS: &[Adapter] = &[
    Adapter {
        id: "aws",
        node_class: ("karpenter.k8s.aws", "EC2NodeClass"),
        vendor: "aws",
        capacity: WITH_RESERVED,
        ..PLAIN
    },
    Adapter {
        id: "aws-auto",
        node_class: ("eks.amazonaws.com", "NodeClass"),
        vendor: "aws",
        capacity: WITH_RESERVED,
        auto_mode: true,
        cautions: &[Caution {
            when: When::ClassNamed("default"),
            words: "the node class named default is made and changed by EKS Auto Mode itself",
        }],
        ..PLAIN
    },
    Adapter {
        id: "azure",
        node_class: ("karpenter.azure.com", "AKSNodeClass"),
        vendor: "azure",
        drops: &[
            Drop::VcpusBelow(2),
            Drop::MemoryBelow(3584),
            Drop::Named(AZURE_NAMES),
            Drop::Exactly(AZURE_TYPES),
            Drop::Retiring,
            Drop::AzureGpus,
        ],
        ..PLAIN
    },
    Adapter {
        id: "gcp",
        node_class: ("karpenter.k8s.gcp", "GCENodeClass"),
        vendor: "gcp",
        drops: &[Drop::SpotOnly],
        ..PLAIN
    },
    Adapter {
        id: "alicloud-ack",
        node_class: ("karpenter.alibabacloud.com", "ECSNodeClass"),
        vendor: "alicloud",
        one_capacity: true,
        old_core: true,
        drops: &[Drop::SpotOnly],
        ..PLAIN
    },
    Adapter {
        id: "alicloud-cloudpilot",
        node_class: ("karpenter.k8s.alibabacloud", "ECSNodeClass"),
        vendor: "alicloud",
        one_architecture: true,
        old_core: true,
        drops: &[Drop::SpotOnly],
        cautions: &[Caution {
            when: When::Zones,
            words: "the provider ignores zones on demand; pin them by the vSwitches of the node class",
        }],
        ..PLAIN
    },
    Adapter {
        id: "hcloud",
        node_class: ("karpenter.hetzner.cloud", "HCloudNodeClass"),
        vendor: "hcloud",
        capacity: ON_DEMAND,
        pinned_capacity: true,
        unsafe_keys: REGION,
        ..PLAIN
    },
    Adapter {
        id: "hcloud-itsh",
        node_class: ("karpenter.itsh.dev", "HCloudNodeClass"),
        vendor: "hcloud",
        architectures: AMD64,
        capacity: ON_DEMAND,
        pinned_capacity: true,
        unsafe_keys: REGION,
        cautions: &[Caution {
            when: When::Zones,
            words: "this provider labels zones by datacenter, and Hetzner takes those labels away",
        }],
        ..PLAIN
    },
    Adapter {
        id: "upcloud",
        node_class: ("karpenter.k8s.upcloud", "UpCloudNodeClass"),
        vendor: "upcloud",
        architectures: AMD64,
        capacity: ON_DEMAND,
        pinned_capacity: true,
        ..PLAIN
    },
    Adapter {
        id: "ovh",
        node_class: ("karpenter.ovhcloud.sh", "OVHNodeClass"),
        vendor: "ovh",
        architectures: AMD64,
        capacity: ON_DEMAND,
        pinned_capacity: true,
        zones: Zones::Always,
        unsafe_keys: REGION,
        universal_keys_only: true,
        old_core: true,
        drops: &[Drop::Named(&["bm-*"]), Drop::Exactly(&["d2-2"]), Drop::GpusUnasked],
        ..PLAIN
    },
    Adapter {
        id: "vultr",
        node_class: ("karpenter.vultr.com", "VultrNodeClass"),
        vendor: "vultr",
        architectures: AMD64,
        capacity: ON_DEMAND,
        pinned_capacity: true,
        zones: Zones::Never,
        drops: &[Drop::Named(&["vbm-*", "vcg-*"])],
        ..PLAIN
    },
];
