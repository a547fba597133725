"""The converters on rows whose outcome is known by hand: python3 -m unittest convert_test"""

import csv
import tempfile
import unittest
from pathlib import Path

from convert import collectives, jobs, pairs, shapes


def converted(converter, files):
    """Files of measurements of tables given as text, as lists of rows by path."""
    with tempfile.TemporaryDirectory() as folder:
        data, into = Path(folder) / "data", Path(folder) / "into"
        for name, text in files.items():
            (data / name).parent.mkdir(parents=True, exist_ok=True)
            (data / name).write_text(text)
        converter.convert(data, into)
        found = {}
        for path in into.rglob("*"):
            if path.suffix == ".csv":
                with open(path, newline="") as file:
                    found[str(path.relative_to(into))] = list(csv.DictReader(file))
            elif path.is_file():
                found[str(path.relative_to(into))] = path.read_text().splitlines()
        return found


TORCHTITAN = ("gpu,model,num_gpus,global_batch,local_batch,seq_len,precision,torch_compile,"
              "parallelism,activation_ckpt,tokens_per_s_per_gpu,peak_mem_gib\n")


def torchtitan(*rows):
    return converted(jobs, {"titan.csv": TORCHTITAN + "\n".join(rows) + "\n"})


class Jobs(unittest.TestCase):
    def test_a_row_of_torchtitan_is_a_plan(self):
        found = torchtitan("H100-96GB-500W,llama3.1-405B,512,,8,131072,float8,yes,"
                           "fsdp2 tp8 pp8 cp4 asynctp 1f1b,full,31,77.1")
        (row,) = found["jobs/torchtitan.csv"]
        for column, value in {
                "workload.hidden": "16384", "workload.kv_heads": "8", "plan.data": "2",
                "plan.tensor": "8", "plan.pipeline": "8", "plan.context": "4", "plan.zero": "3",
                "plan.asynchronous_tensor": "true", "plan.context_balanced": "false",
                "training.microbatch": "1", "training.global_batch": "16",
                "training.recompute": "full", "training.dtype": "fp8", "cluster.nodes": "64",
                "cluster.inter_node.rate": "400 Gbit/s", "workload.logit_bytes": "22",
                "case": "torchtitan/fp8", "use": "source_left_out"}.items():
            self.assertEqual(row[column], value, column)
        # 16 samples of 131072 tokens on 512 devices at 31 tokens/s each.
        self.assertAlmostEqual(float(row["step_s"]), 16 * 131072 / (512 * 31))
        (peak,) = found["memory/torchtitan.csv"]
        self.assertEqual((peak["peak_gib"], "step_s" in peak), ("77.1", False))

    def test_rows_without_words_are_left_out(self):
        found = torchtitan("H100-96GB-500W,llama9-1T,8,,1,8192,bf16,no,fsdp8,full,1,",
                           "H100-96GB-500W,llama3-8B,16,,1,8192,bf16,no,fsdp8,full,1,",
                           "H100-96GB-500W,llama3-8B,8,,1,8192,bf16,no,ddp8,full,1,")
        self.assertEqual(found, {"studies/jobs_left_out.txt": [
            "llama9-1T fsdp8 8192 bf16 full eager: a model of unknown shape",
            "llama3-8B fsdp8 8192 bf16 full eager: the degrees do not make up the GPUs",
            "llama3-8B ddp8 8192 bf16 full eager: 'ddp8'"]})

    def nemo(self, release, model, system, expert):
        found = converted(jobs, {"nemo.csv": (
            "release,task,model,system,gpus,precision,gbs,mbs,seq_len,fsdp,tp,pp,cp,vp,ep,etp,ga,"
            "tokens_per_s_per_gpu,model_tflops_per_gpu\n"
            f"{release} NeMo Container,Pre-Training Performance,{model},{system},64,BF16,1280,4,"
            f"4096,0,1,1,1,n/a,{expert},,,1000,100\n")})
        return found["jobs/nemo.csv"][0]

    def test_rows_of_nemo_take_from_recipes_what_no_column_says(self):
        before = self.nemo("26.04.01", "GPT OSS 120B", "DGX-GB200", "64")
        self.assertEqual(before["workload.fused_experts"], "false")
        self.assertEqual(before["workload.recompute_ops"].count(","), 3)
        self.assertEqual(before["plan.expert_exchange"], "tokens_once")
        fused = "workload.fused_experts"
        self.assertEqual(self.nemo("26.06", "GPT OSS 120B", "DGX-GB200", "64")[fused], "true")
        self.assertEqual(self.nemo("26.06.01", "GPT OSS 120B", "DGX-GB200", "64")[fused], "false")
        self.assertEqual(self.nemo("26.06.01", "Qwen3_30B_a3B", "DGX-H100", "8")[fused], "true")
        self.assertNotIn("plan.expert_exchange",
                         self.nemo("26.04", "GPT OSS 120B", "DGX-H100", "8"))

    def test_sc21_leaves_microbatch_and_interleaving_open(self):
        rows = converted(jobs, {"sc21.csv": (
            "params_billion,heads,hidden,layers,tp,pp,num_gpus,global_batch,tflops_per_gpu\n"
            "529.6,128,20480,105,8,35,2520,2520,163\n")})["jobs/sc21-table1.csv"]
        # 105 layers on 35 stages: one or three chunks; 2520 / 9 = 280 microbatches of 1, 140 of 2,
        # 70 of 4.
        self.assertEqual([(r["training.microbatch"], r["plan.interleave"], r["plan.schedule"])
                          for r in rows],
                         [(m, *c) for m in "124" for c in (("1", "1f1b"), ("3", "interleaved"))])
        self.assertEqual(len({r["choice"] for r in rows}), 6)
        # 96 B s l h² (1 + s/6h + V/16lh) / (gpus · rate)
        flops = (96 * 2520 * 2048 * 105 * 20480**2 *
                 (1 + 2048 / (6 * 20480) + 51200 / (16 * 105 * 20480)))
        self.assertAlmostEqual(float(rows[0]["step_s"]), flops / (2520 * 163e12))

    def test_names_of_models_in_any_spelling(self):
        self.assertEqual(shapes.named("LLAMA3.1_405B")["layers"], 126)
        self.assertEqual(shapes.named("llama3.1-405B")["layers"], 126)
        self.assertEqual(shapes.named("Qwen3_235B_a22B")["experts"], 128)
        self.assertIsNone(shapes.named("DeepSeekV3"))
        self.assertEqual(shapes.mpt("7b")["hidden"], 4096)

    def test_recalled_jobs_fill_their_devices_and_say_what_was_assumed(self):
        with open(Path(__file__).parent / "recalled_jobs.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 20)
        for row in rows:
            ranks = 1
            for degree in ("data", "tensor", "pipeline", "context"):
                ranks *= int(row[f"plan.{degree}"])
            devices = int(row["cluster.devices_per_node"]) * int(row["cluster.nodes"])
            self.assertEqual(ranks, devices, row["name"])
            self.assertIn("Assumed: ", row["note"])


class Collectives(unittest.TestCase):
    def test_every_fourth_size_of_a_curve_is_left_out(self):
        rows = [collectives.measured("h100_sxm5_80", op, 8, 2**i, 1.0)
                for op in ("all_reduce", "all_gather") for i in range(10, 18)]
        blind = [(row["op"], row["size_bytes"]) for row, fitted in
                 collectives.every_fourth_left_out(rows) if not fitted]
        # The second curve begins with another size.
        self.assertEqual(blind, [("all_reduce", 2**13), ("all_reduce", 2**17),
                                 ("all_gather", 2**12), ("all_gather", 2**16)])

    def test_eight_sizes_per_doubling_are_fitted(self):
        rows = [collectives.measured("v100_sxm2_16", "all_reduce", 8, 2**20 + i * 2**14, 1.0)
                for i in range(64)]
        self.assertEqual(sum(fitted for _, fitted in collectives.eight_per_doubling(rows)), 8)


class Pairs(unittest.TestCase):
    def test_a_pair_and_its_mirror_are_one(self):
        head = "file,gpu,gpus_on_one_server,job,batch_size_per_gpu,num_gpus,"
        rows = converted(pairs, {
            "gavel-throughputs/colocated.csv":
                head + "other_job,other_batch,other_num_gpus,steps_per_s,other_steps_per_s\n"
                       "simulation,v100,yes,A,8,1,B,,1,2,8\nsimulation,v100,yes,B,,1,A,8,1,8,2\n"
                       "simulation,v100,yes,A,8,1,A,8,1,0,0\n",
            "gavel-throughputs/isolated.csv":
                head + "steps_per_s\nsimulation,v100,yes,A,8,1,4\nsimulation,v100,yes,B,,1,10\n",
        })["pairs/gavel.csv"]
        self.assertEqual([(r["job"], r["batch"], r["other_job"], r["share"]) for r in rows],
                         [("A", "8", "B", "0.5"), ("B", "1", "A", "0.8")])
        self.assertEqual(rows[0]["device"], "v100_sxm2_16")


if __name__ == "__main__":
    unittest.main()
