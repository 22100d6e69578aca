"""CurriculumNet (Guo, Huang, Zhang, Zhuang, Dong, Scott, Huang 2018): from dense to sparse."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oddly.methods.base import Batch, Context, Method, Stage, StepOutput
from oddly.methods.judgement import Judgement

CLUSTERS = 3
ROWS = 1024  # examples whose distances are in memory at a time


@dataclass
class Curriculum(Method):
    """Per class: ρ_i = #{j: ‖h_i - h_j‖ < d_c}, k-means on ρ into clean, noisy, highly noisy.

    Plain training yields the features h; then a new network learns on the clean cluster, then also
    on the noisy one, then on all three, with loss weights 1, ½, ½. d_c is the distance below which
    60 % of the class's pairs lie. Departures: the first stage is cut short (see `loss_correction`),
    classes are not balanced, and in classes of more than 1,024 examples d_c is estimated from that
    many rows. The judgement: the third cluster.
    """

    first_share: float = 0.25
    """Length of the first stage, as a share of the epochs."""
    distance_percentile: float = 60.0
    """d_c is this percentile of all pairs' distances."""
    components: int = 256
    """Number of principal components to reduce the features to first."""

    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {
        "first_share": (0, 1),
        "distance_percentile": (0, 100),
        "components": (1, math.inf),
    }
    state: ClassVar[Sequence[str]] = ("clusters", "weights", "judgement")

    def stages(self, epochs: int) -> Sequence[Stage]:
        half, quarter = max(1, epochs // 2), epochs // 4
        return (
            Stage("plain", max(1, round(self.first_share * epochs))),
            Stage("clean", half, fresh=True),
            Stage("noisy", quarter),
            Stage("all", max(0, epochs - half - quarter)),
        )

    def setup(self, context: Context) -> None:
        self.clusters = torch.zeros(context.num_examples, dtype=torch.int64)
        self.weights = torch.ones(context.num_examples, device=context.device)

    def begin_stage(self, context: Context) -> None:
        last = {"plain": 2, "clean": 0, "noisy": 1, "all": 2}[context.stage.name]
        context.sampler.set_keep(self.clusters <= last)

    def loss(self, model: nn.Module, batch: Batch) -> StepOutput:
        logits = model(batch.inputs)
        losses = F.cross_entropy(logits, batch.labels, reduction="none")
        return StepOutput((self.weights[batch.index] * losses).mean(), logits)

    def end_stage(self, context: Context) -> None:
        if context.stage.name != "plain":
            return
        features, labels = context.features(context.model).cpu(), context.given_labels.cpu()
        scores = torch.zeros(context.num_examples)
        for k in labels.unique():
            of_class = (labels == k).nonzero().flatten()
            density = self.densities(features[of_class])
            self.clusters[of_class] = cluster(density)
            scores[of_class] = 1 - density / len(of_class)
        self.weights = torch.where(self.clusters == 0, 1.0, 0.5).to(context.device)
        keep, rule = self.clusters < CLUSTERS - 1, "the sparsest of its class's three clusters"
        self.judgement = Judgement.by_mask(keep, scores, context.epoch, rule)

    def densities(self, features: Tensor) -> Tensor:
        """How many others of the class lie within d_c of each example."""
        centred = features - features.mean(0)
        if min(centred.shape) > self.components:
            _, _, directions = torch.pca_lowrank(centred, self.components, center=False)
            centred = centred @ directions
        distances = torch.cdist(centred[:ROWS], centred).flatten()
        place = max(1, round(self.distance_percentile / 100 * len(distances)))
        cut_off = distances.kthvalue(place).values
        near = [(torch.cdist(part, centred) < cut_off).sum(1) for part in centred.split(ROWS)]
        return torch.cat(near) - 1.0


def cluster(densities: Tensor) -> Tensor:
    """0 for the densest of three clusters, 2 for the sparsest; all 0 where there are fewer."""
    from sklearn.cluster import KMeans

    if len(densities.unique()) < CLUSTERS:
        return torch.zeros(len(densities), dtype=torch.int64)
    means = KMeans(CLUSTERS, n_init=10, random_state=0).fit(densities[:, None].numpy())
    ranks = (-torch.from_numpy(means.cluster_centers_[:, 0])).argsort().argsort()
    return ranks[torch.from_numpy(means.labels_).long()]
