# SPDX-License-Identifier: Apache-2.0
"""Models with random weights, by TorchBench's names, trained and run for a few steps each:

    torch_models.py [--modes train,infer] [--steps N] MODEL…

Prints a JSON line for each model, mode and batch size, with the begin and end of each step (CLOCK_REALTIME, ns; the
device is idle between steps), or with the error: a failing model doesn't affect others. Inputs have
TorchBench's usual sizes. Small batches run in fp32, large ones in bf16.
"""

import argparse
import gc
import json
import time

WARM_UP = 3
PAUSE_S = 0.003  # between steps: much more than the difference between two clocks


# --- models: each builder gives (model, batch -> arguments of its call); torch is imported late, for --list --------

def vision(name, size=224):
    def build(torch):
        import torchvision
        return getattr(torchvision.models, name)(weights=None), lambda n: (torch.randn(n, 3, size, size),)
    return build


def timm_model(name, size=224):
    def build(torch):
        import timm
        return timm.create_model(name, pretrained=False), lambda n: (torch.randn(n, 3, size, size),)
    return build


def language(model, config, length=128, decoder=False, **settings):
    """A model of transformers: its class, its configuration's class and settings."""
    def build(torch):
        import transformers
        made = getattr(transformers, config)(**settings)
        vocabulary = made.vocab_size

        def arguments(n):
            tokens = {"input_ids": torch.randint(10, vocabulary - 10, (n, length))}
            return tokens | ({"decoder_input_ids": torch.randint(10, vocabulary - 10, (n, length))} if decoder else {})
        return getattr(transformers, model)(made), arguments
    return build


def whisper(torch):
    import transformers
    made = transformers.WhisperConfig(d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6,
                                      decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536)
    return transformers.WhisperForConditionalGeneration(made), lambda n: {
        "input_features": torch.randn(n, 80, 3000), "decoder_input_ids": torch.randint(10, 50000, (n, 64))}


def clip(torch):
    import transformers
    return transformers.CLIPModel(transformers.CLIPConfig()), lambda n: {
        "input_ids": torch.randint(10, 49000, (n, 32)), "pixel_values": torch.randn(n, 3, 224, 224)}


def graph_network(name):
    def build(torch):
        from torch_geometric.nn import models

        def arguments(n):
            nodes = 2500 * n
            return torch.randn(nodes, 64), torch.randint(0, nodes, (2, 20 * nodes))
        return getattr(models, name)(64, 64, num_layers=3, out_channels=64), arguments
    return build


def dcgan(torch):
    nn = torch.nn
    layers, channels = [], 100
    for more, stride, padding in ((512, 1, 0), (256, 2, 1), (128, 2, 1), (64, 2, 1)):
        layers += [nn.ConvTranspose2d(channels, more, 4, stride, padding, bias=False), nn.BatchNorm2d(more), nn.ReLU()]
        channels = more
    generator = nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh())
    return generator, lambda n: (torch.randn(4 * n, 100, 1, 1),)


def unet(torch):
    nn = torch.nn

    def block(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(),
                             nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList(block(a, b) for a, b in ((3, 64), (64, 128), (128, 256), (256, 512)))
            self.up = nn.ModuleList(nn.ConvTranspose2d(a, a // 2, 2, 2) for a in (512, 256, 128))
            self.after = nn.ModuleList(block(a, a // 2) for a in (512, 256, 128))
            self.last = nn.Conv2d(64, 2, 1)

        def forward(self, x):
            kept = []
            for index, layer in enumerate(self.down):
                x = layer(x)
                if index < 3:
                    kept.append(x)
                    x = nn.functional.max_pool2d(x, 2)
            for up, after in zip(self.up, self.after):
                x = after(torch.cat([kept.pop(), up(x)], 1))
            return self.last(x)
    return UNet(), lambda n: (torch.randn(max(1, n // 4), 3, 256, 256),)


def dlrm(torch):
    nn = torch.nn

    class Dlrm(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList(nn.EmbeddingBag(100_000, 64, mode="sum") for _ in range(26))
            self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 64), nn.ReLU())
            self.top = nn.Sequential(nn.Linear(64 + 27 * 26 // 2, 1024), nn.ReLU(), nn.Linear(1024, 1))

        def forward(self, dense, sparse):
            bottom = self.bottom(dense)
            rows = torch.stack([bottom, *(table(sparse[i]) for i, table in enumerate(self.tables))], 1)
            pairs = torch.bmm(rows, rows.transpose(1, 2))
            i, j = torch.tril_indices(27, 27, -1, device=rows.device)
            return self.top(torch.cat([bottom, pairs[:, i, j]], 1))
    return Dlrm(), lambda n: (torch.randn(64 * n, 13), torch.randint(0, 100_000, (26, 64 * n, 4)))


def deep_recommender(torch):
    nn = torch.nn
    sizes = (50_000, 512, 512, 1024)
    layers = []
    for a, b in (*zip(sizes, sizes[1:]), *zip(sizes[::-1], sizes[::-1][1:])):
        layers += [nn.Linear(a, b), nn.SELU()]
    return nn.Sequential(*layers), lambda n: (torch.randn(16 * n, 50_000),)


def perceptron(*sizes, activation="Tanh", scale=64):
    def build(torch):
        layers = []
        for a, b in zip(sizes, sizes[1:]):
            layers += [torch.nn.Linear(a, b), getattr(torch.nn, activation)()]
        return torch.nn.Sequential(*layers[:-1]), lambda n: (torch.randn(scale * n, sizes[0]),)
    return build


def recurrent(torch):
    class Tts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(40, 768, 3, batch_first=True, proj_size=256)

        def forward(self, x):
            return self.lstm(x)[0][:, -1]
    return Tts(), lambda n: (torch.randn(4 * n, 50, 40),)


def sequence_to_sequence(torch):
    model = torch.nn.Transformer(512, 8, 6, 6, 2048, batch_first=True)
    return model, lambda n: (torch.randn(n, 200, 512), torch.randn(n, 60, 512))


def nano_gpt(torch):
    nn = torch.nn

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(50304, 768), nn.Embedding(256, 768)
            layer = nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True, norm_first=True)
            self.layers = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
            self.head = nn.Linear(768, 50304, bias=False)

        def forward(self, tokens):
            length = tokens.shape[1]
            mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
            x = self.tokens(tokens) + self.places(torch.arange(length, device=tokens.device))
            return self.head(self.layers(x, mask=mask))
    return Gpt(), lambda n: (torch.randint(0, 50304, (n, 256)),)


# name: (builder, small and large batch)
MODELS = {
    "alexnet": (vision("alexnet"), 32, 256),
    "densenet121": (vision("densenet121"), 8, 64),
    "mnasnet1_0": (vision("mnasnet1_0"), 16, 128),
    "mobilenet_v2": (vision("mobilenet_v2"), 16, 128),
    "mobilenet_v3_large": (vision("mobilenet_v3_large"), 16, 128),
    "resnet18": (vision("resnet18"), 16, 128),
    "resnet50": (vision("resnet50"), 16, 64),
    "resnet152": (vision("resnet152"), 8, 32),
    "resnext50_32x4d": (vision("resnext50_32x4d"), 8, 32),
    "shufflenet_v2_x1_0": (vision("shufflenet_v2_x1_0"), 16, 128),
    "squeezenet1_1": (vision("squeezenet1_1"), 16, 128),
    "vgg16": (vision("vgg16"), 8, 64),
    "timm_efficientnet": (timm_model("efficientnet_b0"), 16, 64),
    "timm_nfnet": (timm_model("dm_nfnet_f0"), 8, 32),
    "timm_regnet": (timm_model("regnety_120"), 8, 32),
    "timm_resnest": (timm_model("resnest14d"), 16, 32),
    "timm_vision_transformer": (timm_model("vit_small_patch16_224"), 8, 64),
    "timm_vision_transformer_large": (timm_model("vit_large_patch16_224"), 4, 16),
    "timm_vovnet": (timm_model("ese_vovnet19b_dw"), 16, 64),
    "hf_Albert": (language("AlbertForMaskedLM", "AlbertConfig", hidden_size=768, num_attention_heads=12,
                           intermediate_size=3072), 4, 16),
    "hf_Bart": (language("BartForConditionalGeneration", "BartConfig", decoder=True, d_model=768, encoder_layers=6,
                         decoder_layers=6), 4, 16),
    "hf_Bert": (language("BertForMaskedLM", "BertConfig"), 4, 32),
    "hf_Bert_large": (language("BertForMaskedLM", "BertConfig", hidden_size=1024, num_hidden_layers=24,
                               num_attention_heads=16, intermediate_size=4096), 2, 16),
    "hf_BigBird": (language("BigBirdForMaskedLM", "BigBirdConfig", length=1024), 1, 4),
    "hf_DistilBert": (language("DistilBertForMaskedLM", "DistilBertConfig"), 8, 32),
    "hf_GPT2": (language("GPT2LMHeadModel", "GPT2Config"), 4, 16),
    "hf_GPT2_large": (language("GPT2LMHeadModel", "GPT2Config", n_embd=1280, n_layer=36, n_head=20), 1, 8),
    "hf_Longformer": (language("LongformerForMaskedLM", "LongformerConfig", length=1024, attention_window=512,
                               max_position_embeddings=1026), 1, 4),
    "hf_Roberta_base": (language("RobertaForMaskedLM", "RobertaConfig"), 4, 32),
    "hf_T5": (language("T5ForConditionalGeneration", "T5Config", decoder=True), 4, 16),
    "hf_T5_base": (language("T5ForConditionalGeneration", "T5Config", decoder=True, d_model=768, d_ff=3072,
                            num_layers=12, num_heads=12), 2, 8),
    "hf_Whisper": (whisper, 4, 16),
    "hf_clip": (clip, 4, 32),
    "llama": (language("LlamaForCausalLM", "LlamaConfig", hidden_size=1024, intermediate_size=2816,
                       num_hidden_layers=8, num_attention_heads=16), 2, 16),
    "basic_gnn_edgecnn": (graph_network("EdgeCNN"), 1, 4),
    "basic_gnn_gcn": (graph_network("GCN"), 1, 8),
    "basic_gnn_gin": (graph_network("GIN"), 1, 8),
    "basic_gnn_sage": (graph_network("GraphSAGE"), 1, 8),
    "dcgan": (dcgan, 8, 64),
    "dlrm": (dlrm, 2, 32),
    "lennard_jones": (perceptron(1, 16, 16, 16, 1), 16, 256),
    "nanogpt": (nano_gpt, 2, 16),
    "nvidia_deeprecommender": (deep_recommender, 4, 16),
    "pytorch_unet": (unet, 4, 16),
    "soft_actor_critic": (perceptron(24, 1024, 1024, 12, activation="ReLU"), 4, 32),
    "speech_transformer": (sequence_to_sequence, 2, 16),
    "tts_angular": (recurrent, 4, 32),
}


def loss_of(torch, output):
    """A scalar that depends on all of the model's first output."""
    while not torch.is_tensor(output):
        output = output[0]
    return output.float().mean()


def call(model, arguments):
    return model(**arguments) if isinstance(arguments, dict) else model(*arguments)


def steps_of(torch, model, arguments, mode, dtype, count, ncu):
    """[[begin, end] in ns] of each step after the warm-up."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4) if mode == "train" else None
    model.train(mode == "train")

    def step():
        with torch.autocast("cuda", torch.bfloat16, enabled=dtype == "bf16"):
            if mode == "infer":
                with torch.inference_mode():
                    return call(model, arguments)
            loss = loss_of(torch, call(model, arguments))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return None

    spans = []
    for index in range(WARM_UP + count):
        measured = index >= WARM_UP
        torch.cuda.synchronize()
        time.sleep(PAUSE_S)
        if ncu and measured:
            torch.cuda.cudart().cudaProfilerStart()
        begin = time.time_ns()
        step()
        torch.cuda.synchronize()
        if ncu and measured:
            torch.cuda.cudart().cudaProfilerStop()
        if measured:
            spans.append([begin, time.time_ns()])
    time.sleep(PAUSE_S)
    return spans


def run_model(torch, name, options):
    builder, small, large = MODELS[name]
    with torch.device("cuda"):
        model, make_arguments = builder(torch)
    model = model.cuda()
    for mode in options.modes.split(","):
        for batch, dtype in ((small, "fp32"), (large, "bf16")):
            about = {"model": name, "mode": mode, "batch": batch, "dtype": dtype}
            try:
                with torch.device("cuda"):
                    arguments = make_arguments(batch)
                about["steps"] = steps_of(torch, model, arguments, mode, dtype, options.steps, options.ncu)
            except Exception as error:
                about["error"] = f"{type(error).__name__}: {str(error)[:300]}"
            arguments = None
            print(json.dumps(about), flush=True)
            if options.ncu:
                return


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--list", action="store_true", help="prints the models' names")
    parser.add_argument("--modes", default="train,infer")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--ncu", action="store_true", help="only the small batch, with only its steps profiled")
    options = parser.parse_args()
    if options.list:
        print(json.dumps({"models": list(MODELS)}))
        return
    import torch
    for name in options.models:
        try:
            run_model(torch, name, options)
        except Exception as error:
            print(json.dumps({"model": name, "error": f"{type(error).__name__}: {str(error)[:300]}"}), flush=True)
        gc.collect()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
