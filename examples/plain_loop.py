"""An ordinary PyTorch script made robust to wrong labels by the four lines marked `# oddly`.

python examples/plain_loop.py            # under half a minute on a laptop CPU
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import oddly

EPOCHS = 30

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
labels = torch.tensor(digits.target)
order = torch.randperm(len(labels))
train, test = order[:1437], order[1437:]

noisy = labels[train].clone()  # four labels in ten are replaced by a random one
wrong = torch.rand(len(noisy)) < 0.4
noisy[wrong] = torch.randint(10, (int(wrong.sum()),))

loader = DataLoader(TensorDataset(images[train], noisy), batch_size=64, shuffle=True)
loader, denoiser = oddly.denoise(loader, num_classes=10, epochs=EPOCHS)  # oddly

model = nn.Sequential(
    *(nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()),
    *(nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU()),
    *(nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU()),
    *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)

for _ in range(EPOCHS):
    model.train()
    for x, y, index in loader:  # oddly
        logits = model(x)
        denoiser.observe(index, logits, y)  # oddly
        loss = nn.functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    schedule.step()
    denoiser.end_epoch(model)  # oddly

model.eval()
with torch.no_grad():
    accuracy = (model(images[test]).argmax(1) == labels[test]).float().mean()
print(denoiser.verdict)
mislabelled = noisy != labels[train]
found = ~denoiser.verdict.keep
print(f"precision {float(mislabelled[found].float().mean()):.3f}", end="  ")
print(f"recall {float(found[mislabelled].float().mean()):.3f}", end="  ")
print(f"test accuracy {100 * float(accuracy):.1f} %")
