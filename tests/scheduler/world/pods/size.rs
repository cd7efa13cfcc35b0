//! How much a pod asks for.

use serde_json::{Value, json};

use super::Draw;

/// Containers and their requests.
pub(super) fn spec(draw: &mut Draw) -> Value {
    let cpu = *draw.pick(&["50m", "100m", "250m", "500m", "500m", "1", "1", "1500m", "2", "3500m"]);
    let memory = *draw.pick(&["64Mi", "128Mi", "256Mi", "512Mi", "1Gi", "1Gi", "2Gi", "6Gi"]);
    let mut requests = json!({"cpu": cpu, "memory": memory});
    if draw.chance(20) {
        requests["ephemeral-storage"] = json!(draw.pick(&["1Gi", "1Gi", "5Gi", "12Gi", "30Gi", "90Gi"]));
    }
    let mut limits = json!({});
    if draw.chance(5) {
        limits["nvidia.com/gpu"] = json!(draw.pick(&["1", "2"]));
        requests["nvidia.com/gpu"] = limits["nvidia.com/gpu"].clone();
    }
    let main =
        json!({"name": "main", "image": "none", "resources": {"requests": requests, "limits": limits}});
    let mut spec = json!({"containers": [main], "terminationGracePeriodSeconds": 0});
    if draw.chance(15) {
        spec["initContainers"] = start(draw);
    }
    spec
}

fn start(draw: &mut Draw) -> Value {
    let steps = (0..draw.between(1, 2)).map(|number| {
        let mut step = json!({
            "name": format!("start{number}"),
            "image": "none",
            "resources": {"requests": {"cpu": draw.pick(&["100m", "1", "2"])}},
        });
        if draw.chance(50) {
            step["restartPolicy"] = json!("Always");
        }
        step
    });
    steps.collect::<Vec<_>>().into()
}
