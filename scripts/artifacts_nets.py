# SPDX-License-Identifier: Apache-2.0
"""The networks that artifacts.py starts from: torch modules with seeded weights, and inputs for them.

Not trained and never downloaded. calm() makes their numbers behave as trained ones do:
BatchNormalization's statistics are those of a few inputs, what an initialisation left at zero gets small
weights, and pictures are smooth, so that what comes out depends on what goes in. A row of NETS is a name
and a function that gives (module, inputs); inputs is a dict of tensors by name, in the module's order."""
import zlib

import torch
import torchvision
from torch import nn

F = nn.functional


def pictures(seed, *shape):
    """Smooth seeded pictures, each with a level of its own, as pixels have after the usual mean and std."""
    g = torch.Generator().manual_seed(seed)
    n, c, h, w = shape
    coarse = torch.randn(n, c, max(2, h // 12), max(2, w // 12), generator=g)
    return F.interpolate(coarse, (h, w), mode="bilinear") + 0.3 * torch.randn(shape,
        generator=g) + 0.2 * torch.randn(n, c, 1, 1, generator=g)


def like(inputs, seed):
    """Other inputs of the same names, shapes and types."""
    g = torch.Generator().manual_seed(seed)
    out = {}
    for name, value in inputs.items():
        if "mask" in name:
            value = value.clone()
        elif not value.is_floating_point():
            value = torch.randint(0, max(1, int(value.max()) + 1), value.shape, generator=g,
                                  dtype=value.dtype)
        elif value.dim() == 4 and "past" not in name:
            value = pictures(seed, *value.shape)
        else:
            value = torch.randn(value.shape, generator=g) * value.std().nan_to_num(1.0)
        out[name] = value
    return out


def calm(module, inputs):
    """Weights that are all zero get small numbers; statistics become those of what flows through."""
    module.eval()
    with torch.no_grad():
        for name, p in module.named_parameters():
            if "layer_scale" in name or name.endswith("gamma"):
                p.fill_(0.5)
            elif p.dim() > 1 and float(p.abs().max()) == 0:
                p.normal_(0, 0.05)
        norms = [m for m in module.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        for m in norms:
            m.weight.uniform_(0.7, 1.3)
            m.bias.uniform_(-0.2, 0.2)
            m.reset_running_stats()
            m.momentum = None
            m.train()
        for seed in range(3 if norms else 0):
            several = [like(inputs, 100 * seed + i) for i in range(8)]
            module(*(torch.cat([one[k] for one in several]) for k in inputs))
        for m in norms:
            m.momentum = 0.1
        module.eval()
    return module


class Only(nn.Module):
    """A module whose outputs are the named members of what another returns, called by keyword."""

    def __init__(self, inner, names, take=None, **fixed):
        super().__init__()
        self.inner, self.names, self.take, self.fixed = inner, names, take, fixed

    def forward(self, *args):
        out = self.inner(**dict(zip(self.names, args)), **self.fixed)
        if self.take is None:
            return out
        got = tuple(out[t] for t in self.take)
        return got if len(got) > 1 else got[0]


# ---- pictures ----


def torchvision_net(name, size=64, batch=1, **options):
    def make():
        options.setdefault("num_classes", 10)
        net = getattr(torchvision.models, name)(weights=None, **options)
        return net, {"image": pictures(1, batch, 3, size, size)}

    return make


def googlenet():
    return torchvision.models.googlenet(weights=None, num_classes=10, aux_logits=False,
                                        init_weights=True), {"image": pictures(1, 1, 3, 64, 64)}


def vit(size=64, layers=2, dim=96, heads=4, patch=8, classes=10):
    def make():
        net = torchvision.models.VisionTransformer(size, patch, layers, heads, dim, 4 * dim,
                                                   num_classes=classes)
        return net, {"image": pictures(1, 1, 3, size, size)}

    return make


def swin(version=1):
    def make():
        S = torchvision.models.swin_transformer
        block, merging = (S.SwinTransformerBlock,
                          S.PatchMerging) if version == 1 else (S.SwinTransformerBlockV2, S.PatchMergingV2)
        net = S.SwinTransformer([4, 4], 32, [2, 2], [2, 4], [4, 4], num_classes=10, block=block,
                                downsample_layer=merging)
        return net, {"image": pictures(1, 1, 3, 64, 64)}

    return make


class Twice(nn.Sequential):
    def __init__(self, a, b):
        steps = [nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(),
                 nn.Conv2d(b, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU()]
        super().__init__(*steps)


class UNet(nn.Module):
    def __init__(self, c=16, bilinear=False):
        super().__init__()
        self.down = nn.ModuleList([Twice(3, c), Twice(c, 2 * c), Twice(2 * c, 4 * c)])
        up = (lambda a, b: nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"),
                                         nn.Conv2d(a, b, 1))) if bilinear else (lambda a,
                                             b: nn.ConvTranspose2d(a, b, 2, stride=2))
        self.up = nn.ModuleList([up(4 * c, 2 * c), up(2 * c, c)])
        self.join = nn.ModuleList([Twice(4 * c, 2 * c), Twice(2 * c, c)])
        self.out = nn.Conv2d(c, 4, 1)

    def forward(self, image):
        kept, x = [], image
        for k, step in enumerate(self.down):
            x = step(F.max_pool2d(x, 2) if k else x)
            kept.append(x)
        for k, (up, join) in enumerate(zip(self.up, self.join)):
            x = join(torch.cat([kept[-2 - k], up(x)], 1))
        return self.out(x)


class Yolo(nn.Module):
    """SiLU, CSP-like splits, an upsampled neck, boxes decoded in the graph."""

    def __init__(self, c=16, classes=5):
        super().__init__()
        conv = lambda a, b, k=3, s=1: nn.Sequential(nn.Conv2d(a, b, k, s, k // 2, bias=False),
                                                    nn.BatchNorm2d(b), nn.SiLU())
        self.stem, self.a, self.b = conv(3, c, 3, 2), conv(c, 2 * c, 3, 2), conv(2 * c, 4 * c, 3, 2)
        self.inner, self.tail = conv(c, c), conv(3 * c, 2 * c, 1)
        self.lateral, self.pool, self.neck = conv(4 * c, 2 * c, 1), conv(8 * c, 4 * c, 1), conv(4 * c, 2 * c)
        self.heads = nn.ModuleList([nn.Conv2d(2 * c, 5 + classes, 1), nn.Conv2d(4 * c, 5 + classes, 1)])

    def forward(self, image):
        x = self.a(self.stem(image))
        left, right = x.chunk(2, 1)
        fine = self.tail(torch.cat([left, right, self.inner(right)], 1))
        deep = self.b(fine)
        pooled = [deep]
        for _ in range(3):
            pooled.append(F.max_pool2d(pooled[-1], 5, 1, 2))
        deep = self.pool(torch.cat([pooled[0], pooled[1], pooled[2], pooled[3][:]],
                                   1)[:, : 8 * (deep.shape[1] // 4)])
        fine = self.neck(torch.cat([fine,
                                    F.interpolate(self.lateral(deep), scale_factor=2.0, mode="nearest")], 1))
        out = []
        for head, x, stride in ((self.heads[0], fine, 4.0), (self.heads[1], deep, 8.0)):
            y = head(x)
            n, c, h, w = y.shape
            y = y.view(n, c, h * w).transpose(1, 2)
            out.append(torch.cat([y[..., :2].sigmoid() * stride, y[..., 2:4].clamp(-3, 3).exp() * stride,
                                  y[..., 4:].sigmoid()], -1))
        return torch.cat(out, 1)


class Super(nn.Module):
    """Super-resolution by sub-pixels (ESPCN), with PReLU."""

    def __init__(self, c=32, r=3):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, c, 5, padding=2), nn.PReLU(c), nn.Conv2d(c, c, 3, padding=1),
                                 nn.PReLU(), nn.Conv2d(c, r * r, 3, padding=1), nn.PixelShuffle(r))

    def forward(self, luma):
        return self.net(luma)


class Generator(nn.Sequential):
    def __init__(self, z=32, c=16):
        up = lambda a, b: [nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU()]
        first = [nn.ConvTranspose2d(z, 4 * c, 4, 1, 0, bias=False), nn.BatchNorm2d(4 * c), nn.ReLU()]
        super().__init__(*first, *up(4 * c, 2 * c), *up(2 * c, c), nn.ConvTranspose2d(c, 3, 4, 2, 1),
                         nn.Tanh())


class Discriminator(nn.Sequential):
    def __init__(self, c=16):
        step = lambda a, b: [nn.Conv2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.LeakyReLU(0.2)]
        super().__init__(nn.Conv2d(3, c, 4, 2, 1), nn.LeakyReLU(0.2), *step(c, 2 * c), *step(2 * c, 4 * c),
                         nn.Conv2d(4 * c, 1, 4), nn.Sigmoid(), nn.Flatten())


class Mixer(nn.Module):
    """MLP-Mixer."""

    def __init__(self, dim=48, patches=64, layers=2):
        super().__init__()
        self.stem = nn.Conv2d(3, dim, 8, 8)
        self.norms = nn.ModuleList([nn.LayerNorm(dim) for _ in range(2 * layers)])
        self.mix = nn.ModuleList([nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(), nn.Linear(2 * n, n))
                                  for _ in range(layers) for n in (patches, dim)])
        self.head = nn.Linear(dim, 10)

    def forward(self, image):
        x = self.stem(image).flatten(2).transpose(1, 2)
        for k, (norm, mix) in enumerate(zip(self.norms, self.mix)):
            x = x + (mix(norm(x).transpose(1, 2)).transpose(1, 2) if k % 2 == 0 else mix(norm(x)))
        return self.head(x.mean(1))


# ---- sequences ----


class Recurrent(nn.Module):
    def __init__(self, kind, bidirectional=False, layers=2, vocabulary=200, dim=32, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        self.cells = kind(dim, hidden, layers, bidirectional=bidirectional, batch_first=True)
        self.head = nn.Linear(hidden * (1 + bidirectional), 12)

    def forward(self, tokens):
        return self.head(self.cells(self.embed(tokens))[0])


class Convolutions(nn.Module):
    """A temporal convolution net: dilated 1-D convolutions with gates."""

    def __init__(self, c=24):
        super().__init__()
        self.first = nn.Conv1d(8, c, 1)
        self.a = nn.ModuleList([nn.Conv1d(c, 2 * c, 3, padding=2**k, dilation=2**k) for k in range(3)])
        self.b = nn.ModuleList([nn.Conv1d(c, c, 1) for _ in range(3)])
        self.last = nn.Conv1d(c, 6, 1)

    def forward(self, signal):
        x = self.first(signal)
        for a, b in zip(self.a, self.b):
            p, q = a(x).chunk(2, 1)
            x = x + b(torch.tanh(p) * torch.sigmoid(q))
        return self.last(x)


class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 96), nn.ELU(),
                         nn.Linear(96, 64), nn.Hardswish(), nn.Linear(64, 10), nn.Softmax(-1))


class AutoEncoder(nn.Module):
    """A variational one, its noise an input: GroupNorm, InstanceNorm, Mish."""

    def __init__(self, c=8):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, c, 3, 2, 1), nn.GroupNorm(2, c), nn.SiLU(),
                                  nn.Conv2d(c, 2 * c, 3, 2, 1), nn.InstanceNorm2d(2 * c, affine=True),
                                  nn.SiLU())
        self.mean, self.spread = nn.Linear(2 * c * 64, 16), nn.Linear(2 * c * 64, 16)
        self.up = nn.Sequential(nn.Linear(16, 2 * c * 64), nn.Unflatten(1, (2 * c, 8, 8)),
                                nn.ConvTranspose2d(2 * c, c, 4, 2, 1), nn.Mish(),
                                nn.ConvTranspose2d(c, 3, 4, 2, 1))

    def forward(self, image, noise):
        x = self.down(image).flatten(1)
        return self.up(self.mean(x) + noise * torch.exp(0.5 * self.spread(x).clamp(-4, 4)))


# ---- transformers ----

# larger than is usual, else attention is almost a mean
SMALL = dict(attn_implementation="eager", initializer_range=0.1)


def tokens(vocabulary, length, batch=1, seed=1):
    return torch.randint(1, vocabulary, (batch, length), generator=torch.Generator().manual_seed(seed))


def mask(length, batch=1):
    m = torch.ones(batch, length, dtype=torch.int64)
    m[-1, length - length // 4 :] = 0
    return m


def bert(kind="Bert", layers=2, dim=64, heads=4, vocabulary=300, length=24, batch=2, task="Model", **options):
    def make():
        import transformers as T

        config = dict(vocab_size=vocabulary, hidden_size=dim, num_hidden_layers=layers,
                      num_attention_heads=heads, intermediate_size=4 * dim)
        if kind == "DistilBert":
            config = dict(vocab_size=vocabulary, dim=dim, n_layers=layers, n_heads=heads, hidden_dim=4 * dim)
        config = getattr(T, kind + "Config")(**config, **options, **SMALL)
        net = getattr(T, kind + task)(config)
        names = ["input_ids", "attention_mask"] + (["token_type_ids"] if kind == "Bert" else [])
        inputs = {"input_ids": tokens(vocabulary, length, batch), "attention_mask": mask(length, batch)}
        if kind == "Bert":
            inputs["token_type_ids"] = (torch.arange(length) > length // 2).long().expand(batch,
                length).contiguous()
        return Only(net, names, ["last_hidden_state"] if task == "Model" else ["logits"]), inputs

    return make


class Classic(nn.Module):
    """An encoder written as BERT was first published, which is what fusions of attention look for."""

    def __init__(self, dim=64, heads=4, layers=2, vocabulary=300, longest=64):
        super().__init__()
        self.heads = heads
        self.words, self.places, self.kinds = nn.Embedding(vocabulary, dim), nn.Embedding(longest,
            dim), nn.Embedding(2, dim)
        self.first = nn.LayerNorm(dim)
        linear = lambda a, b: nn.ModuleList([nn.Linear(a, b) for _ in range(layers)])
        norm = lambda: nn.ModuleList([nn.LayerNorm(dim) for _ in range(layers)])
        self.q, self.k, self.v, self.o = linear(dim, dim), linear(dim, dim), linear(dim, dim), linear(dim,
            dim)
        self.up, self.down, self.norm1, self.norm2 = linear(dim, 4 * dim), linear(4 * dim,
            dim), norm(), norm()
        self.register_buffer("position_ids", torch.arange(longest).expand(1, -1))

    def split(self, x):
        return x.view(x.size()[:-1] + (self.heads, x.size(-1) // self.heads)).permute(0, 2, 1, 3)

    def attend(self, k, x, hidden):
        q, key, v = (self.split(f[k](x)) for f in (self.q, self.k, self.v))
        scores = torch.matmul(q, key.transpose(-1, -2)) / (q.size(-1) ** 0.5) + hidden
        mixed = torch.matmul(nn.functional.softmax(scores, dim=-1), v).permute(0, 2, 1, 3).contiguous()
        return self.o[k](mixed.view(mixed.size()[:-2] + (x.size(-1),)))

    def forward(self, input_ids, attention_mask, token_type_ids):
        hidden = (1.0 - attention_mask.unsqueeze(1).unsqueeze(2).to(torch.float32)) * -10000.0
        x = self.first(self.words(input_ids) + self.places(self.position_ids[:, : input_ids.size(1)])
                       + self.kinds(token_type_ids))
        for k in range(len(self.q)):
            x = self.norm1[k](self.attend(k, x, hidden) + x)
            x = self.norm2[k](self.down[k](F.gelu(self.up[k](x))) + x)
        return x


def classic(length=24, batch=2, vocabulary=300, **options):
    def make():
        net = Classic(vocabulary=vocabulary, longest=2 * length, **options)
        kinds = (torch.arange(length) > length // 2).long().expand(batch, length).contiguous()
        inputs = {"input_ids": tokens(vocabulary, length, batch), "attention_mask": mask(length, batch),
                  "token_type_ids": kinds}
        with torch.no_grad():
            for p in net.parameters():
                if p.dim() > 1:
                    p.mul_(1.5)
        return net, inputs

    return make


def decoder(kind, length=16, layers=2, batch=2, **options):
    """A causal language model, without its cache."""

    def make():
        import transformers as T

        names = {"GPT2": ("n_embd", "n_layer", "n_head"),
                 "Bloom": ("hidden_size", "n_layer", "n_head")}.get(kind,
                                                                    ("hidden_size", "num_hidden_layers",
                                                                     "num_attention_heads"))
        sizes = dict(zip(names, (64, layers, 4)))
        config = getattr(T, kind + "Config")(vocab_size=300, **{**sizes, **SMALL, **options})
        net = getattr(T, {"GPT2": "GPT2LMHeadModel"}.get(kind, kind + "ForCausalLM"))(config)
        inputs = {"input_ids": tokens(300, length, batch),
                  "attention_mask": torch.ones(batch, length, dtype=torch.int64)}
        return Only(net, ["input_ids", "attention_mask"], ["logits"], use_cache=False), inputs

    return make


def t5():
    import transformers as T

    config = T.T5Config(vocab_size=300, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4,
                        decoder_start_token_id=0, attn_implementation="eager")
    inputs = {"input_ids": tokens(300, 20), "attention_mask": mask(20),
              "decoder_input_ids": tokens(300, 6, seed=2)}
    return Only(T.T5ForConditionalGeneration(config), list(inputs), ["logits"], use_cache=False), inputs


def bart():
    import transformers as T

    sizes = dict(encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                 encoder_ffn_dim=128, decoder_ffn_dim=128)
    config = T.BartConfig(vocab_size=300, d_model=64, max_position_embeddings=64, **SMALL, **sizes)
    inputs = {"input_ids": tokens(300, 20), "attention_mask": mask(20),
              "decoder_input_ids": tokens(300, 6, seed=2)}
    return Only(T.BartForConditionalGeneration(config), list(inputs), ["logits"], use_cache=False), inputs


def whisper():
    import transformers as T

    sizes = dict(encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                 encoder_ffn_dim=128, decoder_ffn_dim=128)
    ends = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    config = T.WhisperConfig(vocab_size=300, d_model=64, num_mel_bins=20, max_source_positions=50,
                             max_target_positions=32, **SMALL, **sizes, **ends)
    mel = torch.randn(1, 20, 100, generator=torch.Generator().manual_seed(1))
    return Only(T.WhisperForConditionalGeneration(config), ["input_features", "decoder_input_ids"],
                ["logits"], use_cache=False), {"mel": mel, "decoder_input_ids": tokens(300, 6, seed=2)}


def clip():
    import transformers as T

    text = dict(vocab_size=300, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                num_attention_heads=4, max_position_embeddings=32, eos_token_id=299, bos_token_id=1,
                pad_token_id=0)
    vision = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                  image_size=64, patch_size=16)
    net = T.CLIPModel(T.CLIPConfig(text_config=text, vision_config=vision, projection_dim=32,
                                   attn_implementation="eager"))
    ids = tokens(298, 12, 3)
    ids[:, -1] = 299
    inputs = {"input_ids": ids, "pixel_values": pictures(1, 2, 3, 64, 64),
              "attention_mask": torch.ones(3, 12, dtype=torch.int64)}
    return Only(net, list(inputs), ["logits_per_image", "text_embeds"]), inputs


def speech():
    """wav2vec2: a raw wave in."""
    import transformers as T

    config = T.Wav2Vec2Config(vocab_size=32, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                              intermediate_size=128, conv_dim=(32, 32, 32), conv_stride=(5, 4, 4),
                              conv_kernel=(10, 8, 4),
        num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, **SMALL)  # fmt: skip
    return Only(T.Wav2Vec2ForCTC(config), ["input_values"],
                ["logits"]), {"wave": torch.randn(1, 2000, generator=torch.Generator().manual_seed(1))}


def hf_vit():
    import transformers as T

    config = T.ViTConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                         image_size=64, patch_size=16, num_labels=10, **SMALL)
    return Only(T.ViTForImageClassification(config), ["pixel_values"],
                ["logits"]), {"pixel_values": pictures(1, 1, 3, 64, 64)}


def segformer():
    import transformers as T

    config = T.SegformerConfig(num_encoder_blocks=2, depths=[1, 1], sr_ratios=[4, 2], hidden_sizes=[16, 32],
                               patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2],
                               mlp_ratios=[2, 2], decoder_hidden_size=32, num_labels=5)
    return Only(T.SegformerForSemanticSegmentation(config), ["pixel_values"],
                ["logits"]), {"pixel_values": pictures(1, 1, 3, 64, 64)}


def timm_net(name, size=64, **options):
    def make():
        import timm

        return timm.create_model(name, pretrained=False, num_classes=10,
                                 **options), {"image": pictures(1, 1, 3, size, size)}

    return make


def of(make, **inputs):
    """A row of a module made by calling make, and inputs by name."""
    return lambda: (make(), {k: v() for k, v in inputs.items()})


def image(channels=3, size=64, seed=1):
    return lambda: pictures(seed, 1, channels, size, size)


def normal(*shape):
    return lambda: torch.randn(shape, generator=torch.Generator().manual_seed(1))


NETS = {
    "resnet18": torchvision_net("resnet18"),
    "mobilenet_v2": torchvision_net("mobilenet_v2"),
    "mobilenet_v3_small": torchvision_net("mobilenet_v3_small"),
    "efficientnet_b0": torchvision_net("efficientnet_b0", 96),
    "googlenet": googlenet,
    "shufflenet_v2": torchvision_net("shufflenet_v2_x0_5"),
    "squeezenet": torchvision_net("squeezenet1_1"),
    "regnet": torchvision_net("regnet_x_400mf"),
    "regnet_y": torchvision_net("regnet_y_400mf"),
    "densenet121": torchvision_net("densenet121"),
    "mnasnet": torchvision_net("mnasnet0_5"),
    "convnext": of(lambda: torchvision.models.convnext.ConvNeXt(
        [torchvision.models.convnext.CNBlockConfig(32, 64, 2),
         torchvision.models.convnext.CNBlockConfig(64, None, 2)], num_classes=10), image=image()),
    "vit": vit(),
    "swin": swin(),
    "swin_v2": swin(2),
    "maxvit": of(lambda: torchvision.models.MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=10),
                 image=image()),
    "unet": of(UNet, image=image()),
    "unet_bilinear": of(lambda: UNet(bilinear=True), image=image()),
    "deeplab": lambda: (Only(torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(weights=None,
        weights_backbone=None, num_classes=5), ["x"], ["out"]), {"image": pictures(1, 1, 3, 64, 64)}),
    "lraspp": lambda: (Only(torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None,
        weights_backbone=None, num_classes=5), ["input"], ["out"]), {"image": pictures(1, 1, 3, 64, 64)}),
    "yolo": of(Yolo, image=image()),
    "super": of(Super, luma=image(1, 24)),
    "dcgan": of(Generator, z=normal(1, 32, 1, 1)),
    "dcgan_judge": of(Discriminator, image=image(3, 32)),
    "mixer": of(Mixer, image=image()),
    "vae": of(AutoEncoder, image=image(3, 32), noise=normal(1, 16)),
    "voxels": of(lambda: nn.Sequential(nn.Conv3d(2, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU(),
                                       nn.MaxPool3d(2), nn.Conv3d(8, 16, 3, 2, 1), nn.ReLU6(),
                                       nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(16, 6)),
                                       x=normal(1, 2, 12, 12, 12)),
    "mlp": of(Mlp, x=normal(3, 64)),
    "tcn": of(Convolutions, signal=normal(2, 8, 60)),
    "lstm": of(lambda: Recurrent(nn.LSTM), tokens=lambda: tokens(200, 20, 2)),
    "bilstm": of(lambda: Recurrent(nn.LSTM, True), tokens=lambda: tokens(200, 20, 2)),
    "gru": of(lambda: Recurrent(nn.GRU), tokens=lambda: tokens(200, 20, 2)),
    "bert": bert(),
    "minilm": bert(layers=2, dim=384, heads=12, vocabulary=1000, length=32, batch=1),
    "bert_classifier": bert(task="ForSequenceClassification", num_labels=4),
    "bert_classic": classic(),
    "distilbert": bert("DistilBert"),
    "roberta": bert("Roberta", task="ForMaskedLM"),
    "electra": bert("Electra", embedding_size=32),
    "albert": bert("Albert", embedding_size=32),
    "mpnet": bert("MPNet"),
    "gpt2": decoder("GPT2"),
    "gpt_neox": decoder("GPTNeoX", intermediate_size=128),
    "opt": decoder("OPT", ffn_dim=128, word_embed_proj_dim=64),
    "llama": decoder("Llama", num_key_value_heads=2, intermediate_size=160),
    "mistral": decoder("Mistral", num_key_value_heads=2, intermediate_size=160),
    "qwen2": decoder("Qwen2", num_key_value_heads=2, intermediate_size=160),
    "qwen3": decoder("Qwen3", num_key_value_heads=2, intermediate_size=160, head_dim=16),
    "phi": decoder("Phi", intermediate_size=128),
    "gemma": decoder("Gemma", num_key_value_heads=1, intermediate_size=160, head_dim=16),
    "t5": t5,
    "bart": bart,
    "whisper": whisper,
    "clip": clip,
    "wav2vec2": speech,
    "hf_vit": hf_vit,
    "segformer": segformer,
    "ghostnet": timm_net("ghostnet_050"),
    "mobilevit": timm_net("mobilevit_xxs"),
    "efficientvit": timm_net("efficientvit_b0"),
    "repvgg": timm_net("repvgg_a0"),
    "poolformer": timm_net("poolformer_s12"),
    # of the size people use, for timing
    "mobilenet_v2_224": torchvision_net("mobilenet_v2", 224, num_classes=1000),
    "mobilenet_v3_small_224": torchvision_net("mobilenet_v3_small", 224, num_classes=1000),
    "resnet18_224": torchvision_net("resnet18", 224, num_classes=1000),
    "resnet50_224": torchvision_net("resnet50", 224, num_classes=1000),
    "googlenet_224": lambda: (torchvision.models.googlenet(weights=None, num_classes=1000, aux_logits=False,
                                                           init_weights=True), {"image": pictures(1, 1, 3,
                                                               224, 224)}),
    "regnet_224": torchvision_net("regnet_x_400mf", 224, num_classes=1000),
    "efficientnet_b0_224": torchvision_net("efficientnet_b0", 224, num_classes=1000),
    "vit_224": vit(224, 6, 192, 3, 16, 1000),
    "unet_128": of(UNet, image=image(3, 128)),
    "decode_1024": decoder("Llama", length=1, batch=1, hidden_size=1024, num_attention_heads=16,
                           num_key_value_heads=4, intermediate_size=2816),
    "prompt_1024": decoder("Llama", length=128, batch=1, hidden_size=1024, num_attention_heads=16,
                           num_key_value_heads=4, intermediate_size=2816),
    "classic_128": classic(128, 1, 5000, dim=384, heads=12, layers=6),
    "minilm_128": bert(layers=6, dim=384, heads=12, vocabulary=30522, length=128, batch=1),
}


def build(name):
    """(module, inputs) of a row, seeded by its name."""
    torch.manual_seed(zlib.crc32(name.encode()) & 0x7FFFFFFF)
    module, inputs = NETS[name]()
    return calm(module, inputs), inputs
