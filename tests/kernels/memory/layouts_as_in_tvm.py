# Operations on layouts with what TVM 0.26 gives for them: `cargo xtask oracle layouts 3000 1 --write`.
from tvm.script import tirx as T
from tvm.tirx.layout import ComposeLayout, R, S, TileLayout
from tvm.tirx.layout import laneid, tid_in_wg, tx, warpid, wgid, wid_in_wg

assert TileLayout(S[(8, 2,) : (3, 1,)] + 8).apply(0, 1, 0, shape=[2, 8, 1])['m'] == 9
assert TileLayout(S[(6, 8, 1,) : (8, 1, 1,)] + R[(2,) : (4 @ warpid,)]).is_tile_inner(TileLayout(S[(6, 8, 1,) : (8, 1, 1,)] + R[(2,) : (4 @ warpid,)]).tile(TileLayout(S[(2, 8, 2,) : (1, 4, 2,)]), [4, 2, 1, 4], [1, 2, 2, 12]), [4, 4, 2, 48], [1, 2, 2, 12]).canonicalize() == TileLayout(S[(2, 16,) : (1, 2,)])
assert ComposeLayout(3, 2, 4, TileLayout(S[(16,) : (1,)]), True).is_tile_inner(ComposeLayout(3, 2, 4, TileLayout(S[(16,) : (1,)]), True).tile(TileLayout(S[(1, 2, 8, 4,) : (83, 41, 5, 1,)]), [32, 2, 1, 1], [1, 1, 1, 16]), [32, 2, 1, 16], [1, 1, 1, 16]).canonicalize() == TileLayout(S[(2, 8, 4,) : (41, 5, 1,)])
assert TileLayout(S[(5,) : (1,)] + R[(2,) : (1 @ laneid,)] + 2 @ laneid).size() == 5
assert TileLayout(S[(1, 4, 4, 2,) : (2, 2, 8, 1,)] + R[(2,) : (4 @ laneid,)]).slice([1, 8, 4], [(0, 1), (3, 7), (0, 4)]) == None
assert TileLayout(S[(8, 5, 8,) : (64, 12, 1,)]).pack(2) == TileLayout(S[(8, 5, 4,) : (32, 6, 1,)])
assert TileLayout(S[(5, 2,) : (2, 1,)]).unpack(2) == TileLayout(S[(5, 2, 2,) : (4, 2, 1,)])
assert ComposeLayout(1, 0, 1, TileLayout(S[(2, 16, 2, 4,) : (128, 8, 4, 1,)]), True).size() == 256
assert TileLayout(S[(6, 2, 16,) : (2 @ laneid, 4 @ tx, 1,)] + 2 @ laneid).storage() == TileLayout(S[(16,) : (1,)])
assert TileLayout(S[(2, 16, 16,) : (273, 17, 1,)] + R[(2,) : (4 @ laneid,)] + 7 @ laneid).storage() == TileLayout(S[(2, 16, 16,) : (273, 17, 1,)])
assert TileLayout(S[(6, 16, 8,) : (128, 8, 1,)]).is_direct_sum_left(TileLayout(S[(2,) : (1,)]).direct_sum(TileLayout(S[(6, 16, 8,) : (128, 8, 1,)]), [2, 1, 128, 3], [1, 1, 2, 1]), [2, 1, 1, 1, 128, 2, 3, 1], [2, 1, 128, 3]).canonicalize() == TileLayout(S[(2,) : (1,)])
assert TileLayout(S[(16, 2, 4,) : (1, 16, 32,)]).span() == 128
assert TileLayout(S[(6, 5, 4, 4,) : (80, 16, 4, 1,)]).permute_dims([3, 1, 2, 0]) == TileLayout(S[(4, 5, 4, 6,) : (1, 16, 4, 80,)])
assert ComposeLayout(3, 0, 2, TileLayout(S[(2, 3, 16,) : (52, 17, 1,)]), True).span() == 102
assert TileLayout(S[(2, 8, 6, 8,) : (1, 96, 16, 2,)] + 9).group([2, 16, 12, 2])[1] == (0, 1, 3, 5, 6, )
assert TileLayout(S[(8, 2, 3, 16,) : (20, 4 @ laneid, 1 @ warpid, 1,)]).is_tile_inner(TileLayout(S[(8, 2, 3, 16,) : (20, 4 @ laneid, 1 @ warpid, 1,)]).tile(TileLayout(S[(4, 4,) : (4, 1,)]), [1, 1, 4, 4], [2, 8, 1, 48]), [2, 8, 4, 192], [2, 8, 1, 48]).canonicalize() == TileLayout(S[(16,) : (1,)])
assert TileLayout(S[(8, 2, 2, 16,) : (2 @ wgid, 1 @ tid_in_wg, 16, 1,)]).slice([1, 2, 1, 256], [(0, 1), (0, 2), (0, 1), (0, 256)]).canonicalize() == TileLayout(S[(8, 2, 32,) : (256 @ tx, 1 @ tx, 1,)])
assert TileLayout(S[(1, 8, 16, 6,) : (768, 96, 6, 1,)]).permute_dims([2, 1, 3, 0]) == TileLayout(S[(16, 8, 6, 1,) : (6, 96, 1, 768,)])
assert TileLayout(S[(3,) : (1,)] + 1).group([1, 3])[0].canonicalize() == TileLayout(S[(3,) : (1,)] + 1)
assert TileLayout(S[(8,) : (1,)] + R[(2,) : (4 @ warpid,)]).size() == 8
assert TileLayout(S[(2, 2, 2,) : (4, 2, 1,)] + 7).slice([1, 2, 1, 4], [(0, 1), (0, 2), (0, 1), (0, 4)]).canonicalize() == TileLayout(S[(8,) : (1,)] + 7)
assert TileLayout(S[(2,) : (1,)] + R[(4,) : (1,)]).canonicalize() == TileLayout(S[(2,) : (1,)] + R[(4,) : (1,)])
assert TileLayout(S[(4, 8, 16,) : (128, 16, 1,)]).span() == 512
assert TileLayout(S[(4, 6, 2, 16,) : (211, 35, 1 @ wid_in_wg, 1,)]).is_direct_sum_right(TileLayout(S[(4, 6, 2, 16,) : (211, 35, 1 @ wid_in_wg, 1,)]).direct_sum(TileLayout(S[(8, 16,) : (16, 1,)]), [1, 1, 2, 64], [2, 2, 3, 64]), [1, 2, 1, 2, 2, 3, 64, 64], [2, 2, 3, 64]).canonicalize() == TileLayout(S[(128,) : (1,)])
assert TileLayout(S[(2, 8, 2,) : (25, 3, 1,)]).tile_to([3, 64], [1, 32]).canonicalize() == TileLayout(S[(6, 2, 8, 2,) : (48, 25, 3, 1,)])
assert TileLayout(S[(6, 5,) : (5, 1,)]).is_direct_sum_left(TileLayout(S[(4, 8, 1,) : (1, 4, 4,)] + R[(4,) : (1 @ warpid,)]).direct_sum(TileLayout(S[(6, 5,) : (5, 1,)]), [1, 1, 30], [1, 4, 8]), [1, 1, 1, 4, 30, 8], [1, 1, 30]).canonicalize() == TileLayout(S[(4, 8,) : (1, 4,)] + R[(4,) : (1 @ warpid,)])
assert TileLayout(S[(6, 1,) : (1, 1,)]).tile(TileLayout(S[(4, 3, 16,) : (48, 16, 1,)]), [1, 32, 1, 6], [3, 1, 2, 1]).canonicalize() == TileLayout(S[(3, 32, 2, 6,) : (2, 36, 1, 6,)])
assert TileLayout(S[(8,) : (1,)] + R[(4,) : (4 @ laneid,)]).size('laneid') == 1
assert TileLayout(S[(3, 8, 4, 2,) : (64, 8, 2, 1,)] + R[(2,) : (4 @ laneid,)]).is_direct_sum_right(TileLayout(S[(3, 8, 4, 2,) : (64, 8, 2, 1,)] + R[(2,) : (4 @ laneid,)]).direct_sum(TileLayout(S[(1,) : (1,)]), [1, 1, 1, 1], [2, 1, 2, 48]), [1, 2, 1, 1, 1, 2, 1, 48], [2, 1, 2, 48]).canonicalize() == TileLayout(S[(1,) : (1,)])
assert TileLayout(S[(5,) : (1,)] + R[(2,) : (4,)]).permute_dims([0]) == TileLayout(S[(5,) : (1,)] + R[(2,) : (4,)])
assert TileLayout(S[(3,) : (1,)]).slice([3, 1], [(0, 3), (0, 1)]).canonicalize() == TileLayout(S[(3,) : (1,)])
assert TileLayout(S[(6, 2,) : (4 @ laneid, 4 @ wid_in_wg,)]).is_tile_inner(TileLayout(S[(6, 2,) : (4 @ laneid, 4 @ wid_in_wg,)]).tile(TileLayout(S[(8,) : (1,)]), [1, 1, 8, 1], [1, 2, 1, 6]), [1, 2, 8, 6], [1, 2, 1, 6]).canonicalize() == TileLayout(S[(8,) : (1,)])
assert TileLayout(S[(4, 1, 1, 5,) : (17, 13, 9, 1,)]).permute_dims([3, 0, 2, 1]) == TileLayout(S[(5, 4, 1, 1,) : (1, 17, 9, 13,)])
assert TileLayout(S[(8, 4,) : (4, 1,)]).size('laneid') == 1
assert TileLayout(S[(1,) : (1,)]).apply(0)['m'] == 0
assert TileLayout(S[(2, 16, 4,) : (2 @ wgid, 1, 1 @ laneid,)]).storage() == TileLayout(S[(16,) : (1,)])
assert TileLayout(S[(5, 1,) : (5, 1,)]).is_direct_sum_left(TileLayout(S[(8, 3,) : (3, 1,)] + R[(4,) : (4 @ laneid,)] + 8).direct_sum(TileLayout(S[(5, 1,) : (5, 1,)]), [1, 5, 1], [12, 1, 2]), [1, 12, 5, 1, 1, 2], [1, 5, 1]).canonicalize() == TileLayout(S[(24,) : (1,)] + R[(4,) : (4 @ laneid,)] + 8)
assert TileLayout(S[(8, 3,) : (3, 1,)] + 4).size() == 24
assert TileLayout(S[(2, 8,) : (1, 2,)]).direct_sum(TileLayout(S[(6, 1, 6, 8,) : (1 @ warpid, 6, 48, 6,)]), [3, 6, 1, 16], [1, 1, 16, 1]).canonicalize() == TileLayout(S[(6, 3, 2, 8, 16,) : (1 @ warpid, 96, 1, 2, 6,)])
assert TileLayout(S[(5, 2, 16,) : (1, 5, 10,)]).apply(1, 0, 0, 21, shape=[2, 1, 2, 40])['m'] == 53
assert TileLayout(S[(4,) : (1,)] + R[(4,) : (1 @ laneid,)] + 2).span() == 6
assert TileLayout(S[(1, 8,) : (8, 1,)]).unpack(2) == TileLayout(S[(1, 8, 2,) : (16, 2, 1,)])
assert TileLayout(S[(16, 2,) : (2, 1,)] + R[(4,) : (4,)]).tile(TileLayout(S[(6, 2,) : (6, 1,)]), [1, 1, 2, 6], [2, 2, 2, 4]).canonicalize() == TileLayout(S[(4, 2, 2, 3, 2, 4,) : (8, 792, 4, 264, 44, 1,)] + R[(4,) : (4,)])
assert TileLayout(S[(2, 6,) : (1, 2,)] + R[(4,) : (4,)] + 8 @ laneid).size() == 12
assert TileLayout(S[(2, 5,) : (1, 2,)] + 6).is_direct_sum_right(TileLayout(S[(2, 5,) : (1, 2,)] + 6).direct_sum(TileLayout(S[(16, 3,) : (7, 1,)]), [2, 1, 24], [10, 1, 1]), [2, 10, 1, 1, 24, 1], [10, 1, 1]).canonicalize() == TileLayout(S[(16, 3,) : (7, 1,)])
assert TileLayout(S[(6, 3,) : (4, 1,)]).is_tile_inner(TileLayout(S[(6, 3,) : (4, 1,)]).tile(TileLayout(S[(8, 6, 2, 5,) : (30, 1, 240, 6,)]), [1, 2, 240, 1], [1, 1, 6, 3]), [1, 2, 1440, 3], [1, 1, 6, 3]).canonicalize() == TileLayout(S[(8, 6, 2, 5,) : (30, 1, 240, 6,)])
assert TileLayout(S[(4, 1,) : (1 @ wgid, 1,)]).span() == 1
assert ComposeLayout(3, 1, 3, TileLayout(S[(3, 4,) : (4, 1,)]), True).direct_sum(TileLayout(S[(8, 8, 1, 16,) : (1, 161, 9, 10,)]), [4, 4, 64, 1], [6, 2, 1, 1]).canonicalize() == ComposeLayout(3, 1, 3, TileLayout(S[(4, 12, 2, 2, 4, 16,) : (2, 1, 644, 1, 161, 10,)]), True)
assert TileLayout(S[(4, 5, 8, 2,) : (126, 25, 3, 1,)] + 6).canonicalize() == TileLayout(S[(4, 5, 8, 2,) : (126, 25, 3, 1,)] + 6)
assert ComposeLayout(0, 3, 3, TileLayout(S[(8,) : (1,)] + 4), True).apply(0)['m'] == 4
assert TileLayout(S[(2, 1, 1,) : (1, 1, 1,)]).apply(0, 0, 1, 0, shape=[1, 1, 2, 1])['m'] == 1
assert ComposeLayout(1, 1, 2, TileLayout(S[(3, 1, 2,) : (1, 1, 3,)] + 3), True).slice([3, 1, 2], [(0, 1), (0, 1), (0, 2)]).canonicalize() == ComposeLayout(1, 1, 2, TileLayout(S[(2,) : (3,)] + 3), True)
assert TileLayout(S[(4, 3, 5, 1,) : (1 @ wgid, 1 @ laneid, 1, 19,)]).permute_dims([2, 0, 3, 1]) == TileLayout(S[(5, 4, 1, 3,) : (1, 1 @ wgid, 19, 1 @ laneid,)])
assert TileLayout(S[(3, 4,) : (5, 1,)]).tile(TileLayout(S[(4,) : (1,)]), [2, 1, 2, 1], [1, 6, 1, 2]).canonicalize() == TileLayout(S[(2, 3, 2, 2, 2,) : (28, 5, 2, 14, 1,)])
assert TileLayout(S[(4, 4,) : (1, 4,)] + R[(4,) : (1,)] + 5).span() == 24
assert TileLayout(S[(8,) : (1,)] + R[(2,) : (1 @ laneid,)] + 1 @ laneid).size('laneid') == 1
assert TileLayout(S[(16, 2, 2,) : (1 @ wid_in_wg, 2, 4 @ laneid,)] + 8).size() == 64
assert ComposeLayout(2, 2, 2, TileLayout(S[(2,) : (1,)]), False).slice([1, 1, 2, 1], [(0, 1), (0, 1), (0, 2), (0, 1)]).canonicalize() == ComposeLayout(2, 2, 2, TileLayout(S[(2,) : (1,)]), False)
assert TileLayout(S[(4,) : (1,)]).is_direct_sum_left(TileLayout(S[(1, 16,) : (1, 4 @ laneid,)] + R[(2,) : (4 @ laneid,)] + 4 @ laneid).direct_sum(TileLayout(S[(4,) : (1,)]), [1, 2, 1, 2], [1, 8, 2, 1]), [1, 1, 2, 8, 1, 2, 2, 1], [1, 2, 1, 2]).canonicalize() == TileLayout(S[(16,) : (4 @ laneid,)] + R[(2,) : (4 @ laneid,)] + 4 @ laneid)
assert TileLayout(S[(8, 5, 4,) : (9, 1, 76,)]).size('laneid') == 1
assert TileLayout(S[(16, 16,) : (20, 1,)]).is_direct_sum_left(TileLayout(S[(8,) : (1,)] + 9).direct_sum(TileLayout(S[(16, 16,) : (20, 1,)]), [2, 4, 32, 1], [1, 1, 4, 2]), [2, 1, 4, 1, 32, 4, 1, 2], [2, 4, 32, 1]).canonicalize() == TileLayout(S[(8,) : (1,)] + 9)
assert TileLayout(S[(8, 8,) : (8, 1,)]).is_tile_outer(TileLayout(S[(6,) : (1,)] + 6 @ laneid).tile(TileLayout(S[(8, 8,) : (8, 1,)]), [2, 4, 8, 1], [6, 1, 1, 1]), [12, 4, 8, 1], [2, 4, 8, 1]).canonicalize() == TileLayout(S[(6,) : (1,)] + 6 @ laneid)
assert TileLayout(S[(4, 8, 3,) : (12, 1, 52,)] + R[(2,) : (1,)] + 2).tile_to([4, 2, 24, 3], [4, 1, 8, 3]).canonicalize() == TileLayout(S[(4, 6, 8, 3,) : (12, 151, 1, 52,)] + R[(2,) : (1,)] + 2)
assert TileLayout(S[(5, 3,) : (7, 1,)]).is_direct_sum_left(TileLayout(S[(2, 1,) : (1, 2,)]).direct_sum(TileLayout(S[(5, 3,) : (7, 1,)]), [5, 1, 3, 1], [1, 1, 1, 2]), [5, 1, 1, 1, 3, 1, 1, 2], [5, 1, 3, 1]).canonicalize() == TileLayout(S[(2,) : (1,)])
assert TileLayout(S[(16,) : (1,)] + R[(2,) : (1 @ laneid,)] + 2).pack(2) == TileLayout(S[(8,) : (1,)] + R[(2,) : (1 @ laneid,)] + 2)
assert TileLayout(S[(4, 1, 16,) : (18, 17, 1,)] + 7 @ laneid).unpack(8) == TileLayout(S[(4, 1, 16, 8,) : (144, 136, 8, 1,)] + 7 @ laneid)
assert TileLayout(S[(1, 8, 5, 2,) : (129, 16, 3, 1,)]).size() == 80
assert TileLayout(S[(4, 5,) : (1, 5,)]).canonicalize() == TileLayout(S[(4, 5,) : (1, 5,)])
assert TileLayout(S[(5, 8, 4,) : (52, 1, 12,)] + R[(2,) : (1 @ warpid,)]).group([1, 160])[1] == (0, 1, 4, )
assert TileLayout(S[(4,) : (1,)] + 9 @ laneid).canonicalize() == TileLayout(S[(4,) : (1,)] + 9 @ laneid)
assert ComposeLayout(1, 3, 4, TileLayout(S[(6, 8, 8,) : (1, 48, 6,)]), False).slice([1, 96, 4], [(0, 1), (69, 88), (2, 3)]) == None
assert TileLayout(S[(4, 8, 2,) : (16, 1, 8,)]).size() == 64
assert TileLayout(S[(8, 16, 16,) : (1 @ wgid, 1, 17,)] + 7).size('laneid') == 1
assert TileLayout(S[(8, 16, 1,) : (1, 1 @ warpid, 128,)] + R[(2,) : (1,)] + 8).canonicalize() == TileLayout(S[(8, 16,) : (1, 1 @ warpid,)] + R[(2,) : (1,)] + 8)
assert ComposeLayout(3, 2, 4, TileLayout(S[(4, 4,) : (1, 5,)]), True).size() == 16
assert TileLayout(S[(6,) : (1,)] + 3).storage() == TileLayout(S[(6,) : (1,)] + 3)
assert TileLayout(S[(6,) : (4 @ wid_in_wg,)] + R[(2,) : (4 @ laneid,)]).unpack(4) == TileLayout(S[(6, 4,) : (16 @ wid_in_wg, 1,)] + R[(2,) : (4 @ laneid,)])
assert TileLayout(S[(5, 5, 8, 6,) : (240, 1, 30, 5,)]).size('laneid') == 1
assert TileLayout(S[(2, 2,) : (2, 1,)]).span() == 4
assert TileLayout(S[(2, 1, 2, 16,) : (2, 2, 1, 4,)]).tile(TileLayout(S[(16, 16,) : (16, 1,)]), [1, 2, 128], [1, 2, 32]).canonicalize() == TileLayout(S[(2, 2, 128, 2, 16,) : (8192, 2, 64, 1, 4,)])
assert TileLayout(S[(1, 6,) : (10, 1,)] + 1).unpack(8) == TileLayout(S[(1, 6, 8,) : (80, 8, 1,)] + 1)
assert TileLayout(S[(16, 8, 6,) : (57, 7, 1,)]).size('m') == 768
assert TileLayout(S[(16,) : (1 @ laneid,)]).span('laneid') == 16
assert TileLayout(S[(2,) : (1,)]).unpack(2) == TileLayout(S[(2, 2,) : (2, 1,)])
assert TileLayout(S[(8, 8,) : (1, 8,)] + R[(2,) : (4,)]).tile(TileLayout(S[(8,) : (1,)]), [2, 2, 1, 2], [1, 2, 8, 4]).canonicalize() == TileLayout(S[(4, 8, 2, 2, 4,) : (136, 1, 32, 68, 8,)] + R[(2,) : (4,)])
assert TileLayout(S[(3, 4,) : (1 @ wid_in_wg, 1 @ laneid,)]).unpack(2) == TileLayout(S[(3, 4, 2,) : (2 @ wid_in_wg, 2 @ laneid, 1,)])
assert TileLayout(S[(3, 5, 4,) : (20, 4, 1,)] + R[(2,) : (1 @ laneid,)] + 9).tile_to([20, 3, 4, 9], [10, 1, 2, 3]).canonicalize() == TileLayout(S[(2, 10, 6, 2, 3, 3,) : (1242, 6, 207, 3, 69, 1,)] + R[(2,) : (1 @ laneid,)] + 9)
assert ComposeLayout(0, 2, 4, TileLayout(S[(3, 2,) : (2, 1,)] + 6), False).direct_sum(TileLayout(S[(6, 2, 4, 3,) : (24, 12, 1 @ laneid, 4 @ wid_in_wg,)]), [1, 2, 72, 1], [1, 1, 6, 1]).canonicalize() == ComposeLayout(0, 2, 4, TileLayout(S[(12, 4, 3, 6,) : (12, 1 @ tid_in_wg, 128 @ tid_in_wg, 1,)] + 6), False)
assert TileLayout(S[(8, 5, 6,) : (5, 1, 40,)]).slice([1, 4, 5, 12], [(0, 1), (0, 3), (0, 5), (6, 11)]).canonicalize() == TileLayout(S[(15, 5,) : (2, 40,)] + 1)
assert TileLayout(S[(1, 4, 4, 4,) : (64, 1 @ tid_in_wg, 1 @ wgid, 4,)]).slice([2, 1, 2, 16], [(1, 2), (0, 1), (0, 2), (0, 3)]).canonicalize() == TileLayout(S[(2, 3,) : (1 @ tx, 4,)] + 2 @ tx)
assert TileLayout(S[(8, 8,) : (9, 1,)] + 1).span() == 72
assert TileLayout(S[(3, 1, 2, 1,) : (2, 2, 1, 2,)] + 8).storage() == TileLayout(S[(3, 1, 2, 1,) : (2, 2, 1, 2,)] + 8)
assert ComposeLayout(0, 3, 3, TileLayout(S[(2,) : (1,)]), True).is_direct_sum_right(ComposeLayout(0, 3, 3, TileLayout(S[(2,) : (1,)]), True).direct_sum(TileLayout(S[(1,) : (1,)]), [1, 1], [2, 1]), [1, 2, 1, 1], [2, 1]).canonicalize() == TileLayout(S[(1,) : (1,)])
assert ComposeLayout(0, 2, 4, TileLayout(S[(8, 4,) : (4, 1,)]), True).tile(TileLayout(S[(5, 8, 3,) : (24, 1, 8,)]), [10, 1, 12], [1, 1, 32]).canonicalize() == ComposeLayout(0, 2, 4, TileLayout(S[(5, 8, 3, 32,) : (768, 32, 256, 1,)]), True)
assert ComposeLayout(3, 0, 0, TileLayout(S[(4, 4,) : (4, 1,)]), True).canonicalize() == ComposeLayout(3, 0, 0, TileLayout(S[(16,) : (1,)]), True)
assert TileLayout(S[(16, 4, 3, 2,) : (1, 17, 139, 69,)]).unpack(2) == TileLayout(S[(16, 4, 3, 2, 2,) : (2, 34, 278, 138, 1,)])
assert TileLayout(S[(4, 3, 4, 4,) : (1, 4, 12, 48,)] + 4).canonicalize() == TileLayout(S[(4, 3, 4, 4,) : (1, 4, 12, 48,)] + 4)
assert TileLayout(S[(3, 2,) : (2, 1,)]).group([1, 1, 6])[0].canonicalize() == TileLayout(S[(6,) : (1,)])
assert TileLayout(S[(2, 4,) : (4, 1,)] + R[(4,) : (4 @ warpid,)]).storage() == TileLayout(S[(2, 4,) : (4, 1,)])
assert TileLayout(S[(4, 8, 1, 1,) : (8, 1, 1, 1,)]).slice([1, 32], [(0, 1), (26, 32)]).canonicalize() == TileLayout(S[(6,) : (1,)] + 26)
assert TileLayout(S[(8, 16, 6,) : (96, 6, 1,)] + R[(2,) : (4 @ warpid,)]).span() == 768
assert TileLayout(S[(4,) : (4 @ laneid,)]).canonicalize() == TileLayout(S[(4,) : (4 @ laneid,)])
assert TileLayout(S[(8, 4, 16,) : (1, 128, 8,)]).slice([2, 2, 128, 1], [(0, 2), (1, 2), (66, 86), (0, 1)]).canonicalize() == TileLayout(S[(2, 20,) : (4, 8,)] + 19)
assert TileLayout(S[(8, 4, 6, 16,) : (384, 96, 16, 1,)] + R[(2,) : (4 @ warpid,)]).tile_to([768, 8, 3, 2], [384, 4, 1, 2]).canonicalize() == TileLayout(S[(2, 384, 2, 4, 3, 2,) : (18432, 8, 9216, 2, 3072, 1,)] + R[(2,) : (4 @ warpid,)])
assert TileLayout(S[(1, 8,) : (8, 1,)] + R[(2,) : (1 @ laneid,)]).tile(TileLayout(S[(2,) : (1,)]), [2, 1, 1], [1, 1, 8]).canonicalize() == TileLayout(S[(16,) : (1,)] + R[(2,) : (1 @ laneid,)])
assert ComposeLayout(1, 3, 3, TileLayout(S[(16,) : (1,)] + 1), True).canonicalize() == ComposeLayout(1, 3, 3, TileLayout(S[(16,) : (1,)] + 1), True)
assert TileLayout(S[(4, 16,) : (16, 1,)]).is_tile_outer(TileLayout(S[(16,) : (1,)]).tile(TileLayout(S[(4, 16,) : (16, 1,)]), [8, 1, 4, 2], [2, 1, 8, 1]), [16, 1, 32, 2], [8, 1, 4, 2]).canonicalize() == TileLayout(S[(16,) : (1,)])
assert TileLayout(S[(8, 2, 5, 2,) : (1, 9, 19, 96,)] + R[(2,) : (1,)]).canonicalize() == TileLayout(S[(8, 2, 5, 2,) : (1, 9, 19, 96,)] + R[(2,) : (1,)])
assert TileLayout(S[(3, 1,) : (5, 1,)]).is_direct_sum_left(TileLayout(S[(8,) : (1,)] + 5).direct_sum(TileLayout(S[(3, 1,) : (5, 1,)]), [1, 3, 1, 1], [1, 1, 1, 8]), [1, 1, 3, 1, 1, 1, 1, 8], [1, 3, 1, 1]).canonicalize() == TileLayout(S[(8,) : (1,)] + 5)
assert TileLayout(S[(8,) : (1,)]).group([1, 4, 2])[0].canonicalize() == TileLayout(S[(8,) : (1,)])
assert TileLayout(S[(8, 2,) : (2, 1,)]).canonicalize() == TileLayout(S[(16,) : (1,)])
assert TileLayout(S[(5, 16,) : (1 @ tid_in_wg, 2 @ tid_in_wg,)] + 9).unpack(8) == TileLayout(S[(5, 16, 8,) : (8 @ tid_in_wg, 16 @ tid_in_wg, 1,)] + 9)
assert ComposeLayout(3, 0, 1, TileLayout(S[(4, 2, 4,) : (1, 8, 20,)]), True).slice([1, 1, 2, 16], [(0, 1), (0, 1), (1, 2), (0, 16)]).canonicalize() == ComposeLayout(3, 0, 1, TileLayout(S[(2, 2, 4,) : (1, 8, 20,)] + 2), True)
assert TileLayout(S[(1, 2, 8, 2,) : (32, 16, 2, 1 @ warpid,)]).is_tile_inner(TileLayout(S[(1, 2, 8, 2,) : (32, 16, 2, 1 @ warpid,)]).tile(TileLayout(S[(2, 4, 4,) : (21, 5, 1,)]), [1, 16, 2, 1], [4, 4, 1, 2]), [4, 64, 2, 2], [4, 4, 1, 2]).canonicalize() == TileLayout(S[(2, 4, 4,) : (21, 5, 1,)])
assert TileLayout(S[(2, 2, 4, 6,) : (48, 24, 6, 1,)]).canonicalize() == TileLayout(S[(96,) : (1,)])
assert TileLayout(S[(3, 4, 6, 6,) : (144, 36, 6, 1,)] + 3 @ laneid).slice([1, 432], [(0, 1), (0, 432)]).canonicalize() == TileLayout(S[(432,) : (1,)] + 3 @ laneid)
assert TileLayout(S[(1, 3,) : (7, 2 @ tx,)]).tile_to([1, 3], [1, 3]).canonicalize() == TileLayout(S[(3,) : (2 @ tx,)])
assert TileLayout(S[(3,) : (1,)]).tile_to([1, 9], [1, 3]).canonicalize() == TileLayout(S[(9,) : (1,)])
assert TileLayout(S[(8,) : (1,)]).is_tile_outer(TileLayout(S[(2,) : (1,)]).tile(TileLayout(S[(8,) : (1,)]), [2, 1, 4], [1, 1, 2]), [2, 1, 8], [2, 1, 4]).canonicalize() == TileLayout(S[(2,) : (1,)])
assert TileLayout(S[(2, 5, 6,) : (1, 12, 2,)]).apply(1, 3, 0, 0, shape=[2, 5, 1, 6])['m'] == 37
assert TileLayout(S[(4, 4,) : (4, 1 @ warpid,)] + R[(2,) : (1 @ warpid,)]).group([1, 8, 1, 2])[1] == (0, 1, 3, 4, 5, )
assert ComposeLayout(2, 1, 3, TileLayout(S[(5, 8,) : (1, 9,)]), True).storage() == ComposeLayout(2, 1, 3, TileLayout(S[(5, 8,) : (1, 9,)]), True)
assert TileLayout(S[(5, 5,) : (1 @ laneid, 1 @ wid_in_wg,)]).slice([1, 1, 25], [(0, 1), (0, 1), (0, 25)]).canonicalize() == TileLayout(S[(5, 5,) : (1 @ tid_in_wg, 32 @ tid_in_wg,)])
assert ComposeLayout(3, 3, 5, TileLayout(S[(8, 4,) : (4, 1,)]), True).span() == 32
assert TileLayout(S[(5, 3,) : (3, 1,)]).apply(0, 1, shape=[1, 15])['m'] == 1
assert TileLayout(S[(2, 16,) : (20, 1 @ laneid,)] + 5 @ laneid).storage() == TileLayout(S[(2,) : (20,)])
assert TileLayout(S[(6, 4, 2, 3,) : (17, 4, 103, 1,)]).apply(74)['m'] == 53
assert TileLayout(S[(2, 5, 5,) : (2 @ warpid, 4 @ tx, 1,)]).apply(0, 20, shape=[1, 50])['m'] == 0
assert TileLayout(S[(4, 4, 2, 1,) : (21, 5, 2, 1,)] + 2 @ laneid).span('laneid') == 3
assert TileLayout(S[(1, 8,) : (8, 1,)] + 1 @ laneid).unpack(2) == TileLayout(S[(1, 8, 2,) : (16, 2, 1,)] + 1 @ laneid)
assert TileLayout(S[(16, 8,) : (2 @ laneid, 1 @ wid_in_wg,)]).apply(1, 11, 0, shape=[4, 32, 1])['laneid'] == 10
assert TileLayout(S[(4, 16, 2, 4,) : (177, 11, 5, 1,)]).group([16, 1, 32])[1] == (0, 2, 3, 6, )
assert TileLayout(S[(4, 8,) : (4 @ wgid, 1,)]).apply(16)['m'] == 0
assert TileLayout(S[(8, 4,) : (4, 1,)]).is_direct_sum_left(TileLayout(S[(4, 1,) : (1, 1,)]).direct_sum(TileLayout(S[(8, 4,) : (4, 1,)]), [1, 4, 4, 2], [2, 1, 1, 2]), [1, 2, 4, 1, 4, 1, 2, 2], [1, 4, 4, 2]).canonicalize() == TileLayout(S[(4,) : (1,)])
assert TileLayout(S[(2, 6,) : (1, 6,)] + 8).canonicalize() == TileLayout(S[(2, 6,) : (1, 6,)] + 8)
assert TileLayout(S[(2, 8,) : (4 @ wid_in_wg, 1 @ tid_in_wg,)]).size('m') == 1
assert TileLayout(S[(4,) : (1,)] + R[(2,) : (1 @ laneid,)]).canonicalize() == TileLayout(S[(4,) : (1,)] + R[(2,) : (1 @ laneid,)])
assert TileLayout(S[(8,) : (1 @ wid_in_wg,)]).unpack(4) == TileLayout(S[(8, 4,) : (4 @ wid_in_wg, 1,)])
assert TileLayout(S[(16, 4, 5, 6,) : (1, 104, 20, 420,)]).canonicalize() == TileLayout(S[(16, 4, 5, 6,) : (1, 104, 20, 420,)])
assert TileLayout(S[(4,) : (1,)]).apply(0, 0, 0, 0, shape=[1, 1, 4, 1])['m'] == 0
assert TileLayout(S[(16, 6, 2,) : (1, 16, 96,)] + R[(2,) : (4,)]).canonicalize() == TileLayout(S[(16, 6, 2,) : (1, 16, 96,)] + R[(2,) : (4,)])
assert TileLayout(S[(8,) : (1,)]).pack(2) == TileLayout(S[(4,) : (1,)])
assert TileLayout(S[(2, 2, 6,) : (12, 6, 1,)]).group([2, 2, 3, 2])[0].canonicalize() == TileLayout(S[(24,) : (1,)])
assert ComposeLayout(0, 0, 2, TileLayout(S[(8, 3, 4, 1,) : (12, 4, 1, 1,)]), False).span() == 96
assert TileLayout(S[(3,) : (1,)]).apply(2, 0, 0, 0, shape=[3, 1, 1, 1])['m'] == 2
assert TileLayout(S[(6, 4, 4, 2,) : (116, 2 @ wid_in_wg, 1 @ wgid, 2 @ laneid,)]).permute_dims([0, 3, 2, 1]) == TileLayout(S[(6, 2, 4, 4,) : (116, 2 @ laneid, 1 @ wgid, 2 @ wid_in_wg,)])
assert TileLayout(S[(8, 8, 2,) : (16, 1 @ tx, 1,)]).direct_sum(TileLayout(S[(4, 8,) : (9, 1,)]), [32, 1], [128, 1]).canonicalize() == TileLayout(S[(4, 8, 8, 8, 2,) : (9, 1, 16, 1 @ tx, 1,)])
assert TileLayout(S[(16, 8, 5,) : (40, 5, 1,)]).storage() == TileLayout(S[(16, 8, 5,) : (40, 5, 1,)])
assert TileLayout(S[(1, 4, 3,) : (12, 3, 1,)]).apply(7)['m'] == 7
assert TileLayout(S[(4, 3,) : (3, 1 @ tx,)] + R[(4,) : (1,)] + 9).group([12, 1, 1, 1])[1] == (0, 2, 3, 4, 5, )
assert ComposeLayout(3, 3, 4, TileLayout(S[(6, 1, 2,) : (5, 1, 2,)]), False).apply(1)['m'] == 2
assert TileLayout(S[(1,) : (1,)] + R[(4,) : (1 @ warpid,)]).span() == 1
assert TileLayout(S[(2, 8, 1,) : (44, 5, 1,)] + 9).group([8, 2, 1])[1] == (0, 2, 3, 4, )
assert TileLayout(S[(8,) : (1,)] + 5 @ laneid).pack(2) == TileLayout(S[(4,) : (1,)] + 5 @ laneid)
assert TileLayout(S[(3, 8, 4, 8,) : (297, 1, 9, 37,)]).canonicalize() == TileLayout(S[(3, 8, 4, 8,) : (297, 1, 9, 37,)])
assert TileLayout(S[(8, 4,) : (1 @ tx, 1,)] + R[(2,) : (4 @ laneid,)]).apply(0, 11, 0, 0, shape=[2, 16, 1, 1])['tx'] == 2
assert ComposeLayout(2, 2, 4, TileLayout(S[(6,) : (1,)]), True).slice([2, 1, 1, 3], [(0, 2), (0, 1), (0, 1), (0, 3)]).canonicalize() == ComposeLayout(2, 2, 4, TileLayout(S[(6,) : (1,)]), True)
assert TileLayout(S[(4, 1, 2, 6,) : (2, 8, 1, 8,)] + 1).canonicalize() == TileLayout(S[(8, 6,) : (1, 8,)] + 1)
assert TileLayout(S[(1, 4, 2,) : (1, 2, 1,)]).is_direct_sum_left(TileLayout(S[(5, 5,) : (1, 9,)] + R[(2,) : (1,)]).direct_sum(TileLayout(S[(1, 4, 2,) : (1, 2, 1,)]), [8, 1], [25, 1]), [8, 25, 1, 1], [8, 1]).canonicalize() == TileLayout(S[(5, 5,) : (1, 9,)] + R[(2,) : (1,)])
assert TileLayout(S[(2,) : (1,)] + 2).canonicalize() == TileLayout(S[(2,) : (1,)] + 2)
assert TileLayout(S[(3, 8,) : (2 @ warpid, 3,)] + R[(2,) : (1 @ warpid,)] + 9).unpack(8) == TileLayout(S[(3, 8, 8,) : (16 @ warpid, 24, 1,)] + R[(2,) : (1 @ warpid,)] + 9)
assert TileLayout(S[(8, 4, 3,) : (2 @ laneid, 1 @ tid_in_wg, 1 @ wgid,)] + R[(2,) : (1,)] + 6).size() == 96
assert TileLayout(S[(2, 2,) : (6, 1,)]).group([4, 1])[0].canonicalize() == TileLayout(S[(2, 2,) : (6, 1,)])
assert ComposeLayout(0, 0, 1, TileLayout(S[(3, 4,) : (4, 1,)] + 1), False).direct_sum(TileLayout(S[(5,) : (1,)]), [5, 1, 1, 1], [1, 1, 6, 2]).canonicalize() == ComposeLayout(0, 0, 1, TileLayout(S[(5, 12,) : (1, 1,)] + 1), False)
assert TileLayout(S[(2,) : (1,)]).slice([1, 2], [(0, 1), (0, 2)]).canonicalize() == TileLayout(S[(2,) : (1,)])
assert ComposeLayout(2, 2, 4, TileLayout(S[(8,) : (1,)]), True).pack(2) == ComposeLayout(1, 2, 4, TileLayout(S[(4,) : (1,)]), True)
assert TileLayout(S[(8,) : (1,)] + R[(2,) : (1 @ warpid,)]).group([4, 1, 2])[1] == (0, 1, 2, 3, )
assert TileLayout(S[(8, 4, 16,) : (64, 16, 1,)]).group([128, 1, 2, 2])[1] == (0, 3, 4, 5, 6, )
assert TileLayout(S[(2, 2,) : (3, 1,)] + 7 @ laneid).unpack(4) == TileLayout(S[(2, 2, 4,) : (12, 4, 1,)] + 7 @ laneid)
assert TileLayout(S[(3, 8, 6,) : (1, 18, 3,)]).slice([144, 1], [(0, 144), (0, 1)]).canonicalize() == TileLayout(S[(3, 48,) : (1, 3,)])
assert ComposeLayout(1, 2, 2, TileLayout(S[(4, 8, 4, 2,) : (105, 13, 3, 1,)]), True).pack(2) == ComposeLayout(0, 2, 2, TileLayout(S[(4, 8, 4, 1,) : (52, 6, 1, 1,)]), True)
assert TileLayout(S[(6, 4, 2, 16,) : (128, 32, 16, 1,)]).is_direct_sum_left(TileLayout(S[(16,) : (1,)] + 4).direct_sum(TileLayout(S[(6, 4, 2, 16,) : (128, 32, 16, 1,)]), [64, 2, 2, 3], [1, 2, 8, 1]), [64, 1, 2, 2, 2, 8, 3, 1], [64, 2, 2, 3]).canonicalize() == TileLayout(S[(16,) : (1,)] + 4)
assert TileLayout(S[(2, 8,) : (8, 1 @ tx,)] + 3 @ laneid).apply(14)['m'] == 8
assert TileLayout(S[(6, 2, 4, 8,) : (64, 32, 1 @ tid_in_wg, 1,)]).slice([24, 8, 1, 2], [(0, 24), (0, 8), (0, 1), (0, 2)]).canonicalize() == TileLayout(S[(12, 4, 8,) : (32, 1 @ tid_in_wg, 1,)])
assert TileLayout(S[(8, 4, 4,) : (1 @ laneid, 4, 1 @ tid_in_wg,)]).unpack(8) == TileLayout(S[(8, 4, 4, 8,) : (8 @ laneid, 32, 8 @ tid_in_wg, 1,)])
assert TileLayout(S[(4, 2, 8, 4,) : (64, 32, 4, 1,)] + R[(2,) : (4,)]).slice([16, 2, 1, 8], [(0, 12), (0, 2), (0, 1), (3, 8)]).canonicalize() == TileLayout(S[(24, 5,) : (8, 1,)] + R[(2,) : (4,)] + 3)
assert ComposeLayout(0, 1, 1, TileLayout(S[(4,) : (1,)]), True).canonicalize() == ComposeLayout(0, 1, 1, TileLayout(S[(4,) : (1,)]), True)
assert TileLayout(S[(5, 4, 1, 4,) : (16, 4, 4, 1,)]).apply(5, 0, 3, shape=[16, 1, 5])['m'] == 28
assert TileLayout(S[(3, 2, 6, 2,) : (12, 6, 1, 36,)] + 1).slice([9, 8, 1], [(8, 9), (3, 7), (0, 1)]) == None
assert TileLayout(S[(5,) : (1,)] + 4).is_direct_sum_right(TileLayout(S[(5,) : (1,)] + 4).direct_sum(TileLayout(S[(6, 6, 8,) : (1, 6, 36,)]), [1, 6, 1, 48], [1, 1, 1, 5]), [1, 1, 6, 1, 1, 1, 48, 5], [1, 1, 1, 5]).canonicalize() == TileLayout(S[(6, 6, 8,) : (1, 6, 36,)])
assert TileLayout(S[(4,) : (1,)] + R[(2,) : (4 @ laneid,)]).canonicalize() == TileLayout(S[(4,) : (1,)] + R[(2,) : (4 @ laneid,)])
assert TileLayout(S[(6, 16,) : (16, 1,)]).is_direct_sum_left(TileLayout(S[(1, 5, 2,) : (10, 2, 1,)] + R[(4,) : (1,)] + 6 @ laneid).direct_sum(TileLayout(S[(6, 16,) : (16, 1,)]), [1, 1, 1, 96], [1, 1, 5, 2]), [1, 1, 1, 1, 1, 5, 96, 2], [1, 1, 1, 96]).canonicalize() == TileLayout(S[(10,) : (1,)] + R[(4,) : (1,)] + 6 @ laneid)
assert ComposeLayout(2, 2, 3, TileLayout(S[(1, 2,) : (6, 1,)]), True).unpack(4) == ComposeLayout(4, 2, 3, TileLayout(S[(1, 2, 4,) : (24, 4, 1,)]), True)
assert ComposeLayout(0, 3, 4, TileLayout(S[(2,) : (1,)]), False).unpack(2) == ComposeLayout(1, 3, 4, TileLayout(S[(2, 2,) : (2, 1,)]), False)
assert TileLayout(S[(5, 8, 1,) : (9, 1, 46,)] + R[(2,) : (1 @ warpid,)] + 9 @ laneid).slice([1, 40], [(0, 1), (22, 39)]) == None
assert TileLayout(S[(2, 2,) : (2, 1,)] + R[(2,) : (4 @ laneid,)]).group([2, 2, 1, 1])[0].canonicalize() == TileLayout(S[(4,) : (1,)] + R[(2,) : (4 @ laneid,)])
assert TileLayout(S[(4,) : (1 @ tid_in_wg,)]).apply(3)['tid_in_wg'] == 3
assert TileLayout(S[(1,) : (1,)] + 5 @ laneid).unpack(4) == TileLayout(S[(1, 4,) : (4, 1,)] + 5 @ laneid)
assert TileLayout(S[(8, 16, 8,) : (1 @ warpid, 8, 1 @ tx,)]).span() == 121
assert TileLayout(S[(5,) : (1 @ wgid,)] + 9 @ laneid).size() == 5
assert TileLayout(S[(2,) : (1,)] + R[(2,) : (4,)]).apply(0)['m'] == 0
assert TileLayout(S[(4,) : (1,)]).apply(0, 0, 0, 0, shape=[1, 2, 1, 2])['m'] == 0
assert TileLayout(S[(5,) : (1,)] + R[(2,) : (4 @ laneid,)]).apply(0, 0, 0, 2, shape=[1, 1, 1, 5])['m'] == 2
assert TileLayout(S[(8, 1, 2,) : (2, 2, 1,)] + R[(4,) : (4 @ laneid,)]).canonicalize() == TileLayout(S[(16,) : (1,)] + R[(4,) : (4 @ laneid,)])
assert TileLayout(S[(6,) : (1,)] + R[(2,) : (1,)] + 8 @ laneid).storage() == TileLayout(S[(6,) : (1,)] + R[(2,) : (1,)])
assert ComposeLayout(0, 1, 2, TileLayout(S[(2, 8, 16,) : (1, 2, 16,)] + 2), True).direct_sum(TileLayout(S[(1, 5,) : (1, 2,)]), [1, 5, 1, 1], [2, 8, 2, 8]).canonicalize() == ComposeLayout(0, 1, 2, TileLayout(S[(2, 5, 8, 16,) : (1, 2, 2, 16,)] + 2), True)
assert TileLayout(S[(4,) : (1,)]).is_direct_sum_right(TileLayout(S[(4,) : (1,)]).direct_sum(TileLayout(S[(2, 4, 8, 2,) : (64, 16, 2, 1,)]), [4, 2, 16, 1], [2, 1, 1, 2]), [4, 2, 2, 1, 16, 1, 1, 2], [2, 1, 1, 2]).canonicalize() == TileLayout(S[(128,) : (1,)])
assert TileLayout(S[(5,) : (1,)] + 6 @ laneid).span() == 5
assert TileLayout(S[(8, 4, 4, 5,) : (20, 160, 1, 4,)]).canonicalize() == TileLayout(S[(8, 4, 4, 5,) : (20, 160, 1, 4,)])
assert TileLayout(S[(2,) : (1,)]).slice([1, 1, 2, 1], [(0, 1), (0, 1), (0, 1), (0, 1)]).canonicalize() == TileLayout(S[(1,) : (1,)])
assert TileLayout(S[(4, 4,) : (8, 1,)] + R[(4,) : (4 @ warpid,)]).span('laneid') == 1
assert TileLayout(S[(8, 2, 16, 16,) : (44, 20, 1, 356,)] + R[(4,) : (1 @ warpid,)] + 2).storage() == TileLayout(S[(8, 2, 16, 16,) : (44, 20, 1, 356,)] + 2)
assert TileLayout(S[(2,) : (1,)] + R[(2,) : (1 @ laneid,)] + 8).apply(0, 1, shape=[1, 2])['m'] == 9
assert ComposeLayout(3, 1, 1, TileLayout(S[(8, 5,) : (9, 1,)] + 2 @ laneid), False).unpack(2) == ComposeLayout(4, 1, 1, TileLayout(S[(8, 5, 2,) : (18, 2, 1,)] + 2 @ laneid), False)
assert TileLayout(S[(4, 2,) : (1 @ warpid, 1,)]).unpack(4) == TileLayout(S[(4, 2, 4,) : (4 @ warpid, 4, 1,)])
assert TileLayout(S[(2, 8, 8,) : (64, 8, 1,)]).is_tile_outer(TileLayout(S[(16,) : (1,)] + R[(2,) : (1 @ laneid,)]).tile(TileLayout(S[(2, 8, 8,) : (64, 8, 1,)]), [2, 2, 1, 32], [8, 1, 2, 1]), [16, 2, 2, 32], [2, 2, 1, 32]).canonicalize() == TileLayout(S[(16,) : (1,)] + R[(2,) : (1 @ laneid,)])
assert TileLayout(S[(2,) : (1,)]).tile(TileLayout(S[(4, 8,) : (8, 4 @ wgid,)]), [2, 16, 1], [1, 1, 2]).canonicalize() == TileLayout(S[(4, 8, 2,) : (16, 4 @ wgid, 1,)])
assert TileLayout(S[(6, 4, 8,) : (1, 48, 6,)]).tile(TileLayout(S[(8,) : (1,)]), [2, 2, 2, 1], [1, 1, 3, 64]).canonicalize() == TileLayout(S[(8, 6, 32,) : (192, 1, 6,)])
assert TileLayout(S[(4, 6, 8, 6,) : (6, 1, 144, 24,)] + R[(4,) : (4 @ warpid,)]).canonicalize() == TileLayout(S[(24, 48,) : (1, 24,)] + R[(4,) : (4 @ warpid,)])
assert TileLayout(S[(8, 8, 8, 5,) : (320, 40, 5, 1,)] + 2).slice([2, 4, 80, 4], [(0, 1), (3, 4), (64, 80), (0, 2)]).canonicalize() == TileLayout(S[(16, 2,) : (4, 1,)] + 1218)
assert TileLayout(S[(4,) : (1,)] + R[(4,) : (1 @ laneid,)] + 4 @ laneid).group([2, 1, 2, 1])[1] == (0, 1, 2, 3, 4, )
assert TileLayout(S[(8, 5, 1,) : (5, 1 @ tx, 5,)]).slice([4, 1, 1, 10], [(0, 1), (0, 1), (0, 1), (0, 10)]).canonicalize() == TileLayout(S[(2, 5,) : (5, 1 @ tx,)])
assert TileLayout(S[(1, 2,) : (1, 1,)]).size('laneid') == 1
assert TileLayout(S[(5, 5,) : (1, 5,)] + 9).is_direct_sum_right(TileLayout(S[(5, 5,) : (1, 5,)] + 9).direct_sum(TileLayout(S[(4,) : (1,)]), [1, 1, 4], [25, 1, 1]), [1, 25, 1, 1, 4, 1], [25, 1, 1]).canonicalize() == TileLayout(S[(4,) : (1,)])
assert TileLayout(S[(8, 3, 6,) : (3, 1, 24,)]).apply(54)['m'] == 9
assert TileLayout(S[(5, 8,) : (8, 1,)]).is_tile_outer(ComposeLayout(0, 1, 3, TileLayout(S[(4, 3, 16, 8,) : (384, 128, 8, 1,)]), True).tile(TileLayout(S[(5, 8,) : (8, 1,)]), [5, 1, 1, 8], [16, 3, 2, 16]), [80, 3, 2, 128], [5, 1, 1, 8]).canonicalize() == ComposeLayout(0, 1, 3, TileLayout(S[(1536,) : (1,)]), True)
assert TileLayout(S[(1, 16,) : (1, 1 @ wid_in_wg,)]).apply(12)['m'] == 0
assert ComposeLayout(3, 1, 2, TileLayout(S[(1,) : (1,)]), True).slice([1], [(0, 1)]).canonicalize() == ComposeLayout(3, 1, 2, TileLayout(S[(1,) : (1,)]), True)
assert TileLayout(S[(8, 2,) : (1, 8,)] + 7 @ laneid).is_direct_sum_right(TileLayout(S[(8, 2,) : (1, 8,)] + 7 @ laneid).direct_sum(TileLayout(S[(2, 1, 4,) : (4, 4, 1,)]), [1, 8, 1], [1, 4, 4]), [1, 1, 8, 4, 1, 4], [1, 4, 4]).canonicalize() == TileLayout(S[(8,) : (1,)])
assert ComposeLayout(1, 1, 3, TileLayout(S[(2, 4,) : (1, 2,)]), True).apply(2)['m'] == 4
assert TileLayout(S[(3, 4, 3, 2,) : (92, 22, 6, 1,)] + R[(4,) : (4 @ warpid,)] + 9 @ laneid).canonicalize() == TileLayout(S[(3, 4, 3, 2,) : (92, 22, 6, 1,)] + R[(4,) : (4 @ warpid,)] + 9 @ laneid)
assert TileLayout(S[(8, 2, 1, 8,) : (2 @ wid_in_wg, 16, 12, 1,)]).permute_dims([3, 0, 2, 1]) == TileLayout(S[(8, 8, 1, 2,) : (1, 2 @ wid_in_wg, 12, 16,)])
assert TileLayout(S[(4, 5, 2, 5,) : (50, 10, 5, 1,)]).slice([2, 1, 2, 50], [(0, 1), (0, 1), (1, 2), (0, 50)]).canonicalize() == TileLayout(S[(50,) : (1,)] + 50)
assert ComposeLayout(3, 2, 4, TileLayout(S[(1, 1,) : (1, 1,)]), True).direct_sum(TileLayout(S[(6, 8, 3, 2,) : (180, 22, 6, 1,)]), [1, 3, 96, 1], [1, 1, 1, 1]).canonicalize() == ComposeLayout(3, 2, 4, TileLayout(S[(6, 8, 3, 2,) : (180, 22, 6, 1,)]), True)
assert TileLayout(S[(2, 8,) : (9, 1,)] + R[(2,) : (1,)] + 9 @ laneid).tile_to([3, 16], [1, 16]).canonicalize() == TileLayout(S[(6, 8,) : (9, 1,)] + R[(2,) : (1,)] + 9 @ laneid)
assert TileLayout(S[(4, 2,) : (1, 5,)] + 3 @ laneid).span('m') == 9
assert TileLayout(S[(4, 2, 3,) : (6, 3, 1,)] + R[(4,) : (1 @ warpid,)]).span() == 24
assert TileLayout(S[(2,) : (1,)]).span('laneid') == 1
assert TileLayout(S[(6,) : (1,)] + 6 @ laneid).canonicalize() == TileLayout(S[(6,) : (1,)] + 6 @ laneid)
assert TileLayout(S[(16, 2,) : (2 @ tid_in_wg, 1 @ tid_in_wg,)] + R[(4,) : (1 @ warpid,)]).apply(3, 0, shape=[32, 1])['tid_in_wg'] == 3
assert TileLayout(S[(5,) : (1 @ laneid,)]).apply(0)['laneid'] == 0
assert TileLayout(S[(5, 8, 1, 4,) : (32, 4, 4, 1 @ warpid,)]).canonicalize() == TileLayout(S[(40, 4,) : (4, 1 @ warpid,)])
assert TileLayout(S[(1, 6, 3,) : (18, 3, 1,)] + 1 @ laneid).tile_to([9, 3, 6, 6], [3, 1, 2, 3]).canonicalize() == TileLayout(S[(3, 3, 9, 2, 2, 3,) : (324, 6, 36, 3, 18, 1,)] + 1 @ laneid)
assert TileLayout(S[(4, 4,) : (1, 4,)]).canonicalize() == TileLayout(S[(4, 4,) : (1, 4,)])
assert TileLayout(S[(16, 6, 4,) : (24, 4, 1,)] + R[(2,) : (4,)]).group([4, 12, 8, 1])[0].canonicalize() == TileLayout(S[(384,) : (1,)] + R[(2,) : (4,)])
assert TileLayout(S[(16, 2, 4, 2,) : (11, 2 @ laneid, 1, 5,)] + 5).group([2, 2, 8, 8])[0].canonicalize() == TileLayout(S[(16, 2, 4, 2,) : (11, 2 @ laneid, 1, 5,)] + 5)
assert TileLayout(S[(2, 2, 2, 5,) : (20, 10, 5, 1,)]).canonicalize() == TileLayout(S[(40,) : (1,)])
assert TileLayout(S[(16, 2,) : (6, 1,)]).size('m') == 32
assert TileLayout(S[(5, 6, 6, 6,) : (1 @ tx, 1 @ laneid, 4 @ laneid, 10,)] + 9).apply(59)['laneid'] == 13
assert TileLayout(S[(5,) : (1,)]).is_tile_outer(TileLayout(S[(16,) : (4 @ tx,)] + 5).tile(TileLayout(S[(5,) : (1,)]), [1, 1, 1, 5], [8, 1, 2, 1]), [8, 1, 2, 5], [1, 1, 1, 5]).canonicalize() == TileLayout(S[(16,) : (4 @ tx,)] + 5)
assert TileLayout(S[(5, 1,) : (5, 1,)]).span() == 21
assert ComposeLayout(0, 1, 2, TileLayout(S[(2, 16, 4,) : (81, 5, 1,)] + 5), False).is_tile_inner(ComposeLayout(0, 1, 2, TileLayout(S[(2, 16, 4,) : (81, 5, 1,)] + 5), False).tile(TileLayout(S[(2, 6, 16, 8,) : (196, 396, 12, 1,)]), [192, 1, 8, 1], [1, 1, 1, 128]), [192, 1, 8, 128], [1, 1, 1, 128]).canonicalize() == TileLayout(S[(2, 6, 16, 8,) : (196, 396, 12, 1,)])
assert TileLayout(S[(16, 4,) : (1, 20,)] + R[(4,) : (1 @ laneid,)]).unpack(8) == TileLayout(S[(16, 4, 8,) : (8, 160, 1,)] + R[(4,) : (1 @ laneid,)])
assert TileLayout(S[(4,) : (1,)]).is_direct_sum_left(TileLayout(S[(8,) : (4 @ wid_in_wg,)] + 1).direct_sum(TileLayout(S[(4,) : (1,)]), [1, 2, 2, 1], [1, 2, 4, 1]), [1, 1, 2, 2, 2, 4, 1, 1], [1, 2, 2, 1]).canonicalize() == TileLayout(S[(8,) : (4 @ wid_in_wg,)] + 1)
assert TileLayout(S[(16, 2, 8,) : (1 @ tx, 8, 1,)]).tile(TileLayout(S[(1, 2, 8,) : (28, 12, 1,)]), [4, 1, 2, 2], [1, 1, 16, 16]).canonicalize() == TileLayout(S[(2, 4, 16, 32,) : (192, 32, 1 @ tx, 1,)])
assert TileLayout(S[(3,) : (1,)]).storage() == TileLayout(S[(3,) : (1,)])
assert ComposeLayout(2, 3, 5, TileLayout(S[(6, 2,) : (2, 1,)]), True).span() == 12
assert TileLayout(S[(8,) : (1,)]).is_tile_outer(TileLayout(S[(2, 1, 5,) : (1, 2, 2,)]).tile(TileLayout(S[(8,) : (1,)]), [2, 1, 1, 4], [1, 1, 10, 1]), [2, 1, 10, 4], [2, 1, 1, 4]).canonicalize() == TileLayout(S[(2, 5,) : (1, 2,)])
assert TileLayout(S[(2, 5, 1, 4,) : (20, 4, 4, 1,)] + R[(4,) : (1 @ laneid,)]).apply(25)['m'] == 25
assert TileLayout(S[(16,) : (1,)] + 1).canonicalize() == TileLayout(S[(16,) : (1,)] + 1)
assert TileLayout(S[(4, 4, 2, 4,) : (1, 45, 5, 11,)] + R[(4,) : (4 @ laneid,)]).slice([8, 2, 8, 1], [(0, 4), (0, 2), (2, 8), (0, 1)]) == None
assert TileLayout(S[(16, 5,) : (6, 1 @ tid_in_wg,)]).apply(24)['m'] == 24
assert TileLayout(S[(4, 8, 4, 8,) : (256, 2 @ wgid, 4 @ laneid, 1,)]).pack(2) == TileLayout(S[(4, 8, 4, 4,) : (128, 1 @ wgid, 2 @ laneid, 1,)])
assert TileLayout(S[(1,) : (1,)]).permute_dims([0]) == TileLayout(S[(1,) : (1,)])
assert TileLayout(S[(6, 6,) : (1, 6,)] + R[(4,) : (1,)]).is_direct_sum_right(TileLayout(S[(6, 6,) : (1, 6,)] + R[(4,) : (1,)]).direct_sum(TileLayout(S[(4, 16,) : (1, 5,)]), [1, 32, 1, 2], [6, 1, 3, 2]), [1, 6, 32, 1, 1, 3, 2, 2], [6, 1, 3, 2]).canonicalize() == TileLayout(S[(4, 16,) : (1, 5,)])
assert TileLayout(S[(2, 8, 4, 1,) : (72, 2 @ wgid, 2 @ tx, 68,)]).apply(51)['tx'] == 6
assert TileLayout(S[(4, 16,) : (1 @ warpid, 2 @ warpid,)]).unpack(2) == TileLayout(S[(4, 16, 2,) : (2 @ warpid, 4 @ warpid, 1,)])
assert TileLayout(S[(4, 4, 5,) : (20, 5, 1,)]).tile(TileLayout(S[(8, 2,) : (2, 1,)]), [2, 4, 1, 2], [2, 2, 20, 1]).canonicalize() == TileLayout(S[(2, 2, 4, 40, 2,) : (640, 40, 160, 1, 80,)])
assert TileLayout(S[(4, 16,) : (16, 1,)]).apply(11, 0, 0, shape=[16, 1, 4])['m'] == 44
assert TileLayout(S[(8, 6, 16, 5,) : (1 @ tid_in_wg, 1 @ wgid, 4 @ wgid, 1,)] + R[(4,) : (1,)]).span('laneid') == 1
assert ComposeLayout(2, 3, 4, TileLayout(S[(3, 8,) : (8, 1,)] + 1 @ laneid), False).canonicalize() == ComposeLayout(2, 3, 4, TileLayout(S[(24,) : (1,)] + 1 @ laneid), False)
assert ComposeLayout(0, 3, 4, TileLayout(S[(6, 1, 8,) : (10, 9, 1,)]), True).direct_sum(TileLayout(S[(3,) : (1,)]), [1, 1, 1, 3], [2, 1, 24, 1]).canonicalize() == ComposeLayout(0, 3, 4, TileLayout(S[(6, 8, 3,) : (10, 1, 1,)]), True)
assert TileLayout(S[(4,) : (1 @ wid_in_wg,)]).canonicalize() == TileLayout(S[(4,) : (1 @ wid_in_wg,)])
assert TileLayout(S[(4, 8,) : (4 @ tid_in_wg, 2 @ tid_in_wg,)]).tile_to([2, 4, 16, 6], [1, 2, 8, 2]).canonicalize() == TileLayout(S[(4, 2, 2, 2, 4, 3, 2,) : (6, 8 @ tid_in_wg, 3, 4 @ tid_in_wg, 4 @ tid_in_wg, 1, 2 @ tid_in_wg,)])
assert ComposeLayout(2, 2, 2, TileLayout(S[(16, 4, 2,) : (6, 100, 1,)]), True).unpack(2) == ComposeLayout(3, 2, 2, TileLayout(S[(16, 4, 2, 2,) : (12, 200, 2, 1,)]), True)
assert TileLayout(S[(4, 8,) : (2 @ laneid, 1,)]).slice([2, 1, 2, 8], [(0, 2), (0, 1), (0, 2), (5, 7)]).canonicalize() == TileLayout(S[(4, 2,) : (2 @ laneid, 1,)] + 5)
assert ComposeLayout(1, 3, 3, TileLayout(S[(8, 4, 8,) : (32, 8, 1,)]), True).is_tile_inner(ComposeLayout(1, 3, 3, TileLayout(S[(8, 4, 8,) : (32, 8, 1,)]), True).tile(TileLayout(S[(4, 3,) : (7, 1,)]), [1, 4, 3, 1], [1, 128, 1, 2]), [1, 512, 3, 2], [1, 128, 1, 2]).canonicalize() == TileLayout(S[(4, 3,) : (7, 1,)])
assert TileLayout(S[(3, 2, 8, 8,) : (3, 1, 10, 81,)] + 9).permute_dims([1, 3, 0, 2]) == TileLayout(S[(2, 8, 3, 8,) : (1, 81, 3, 10,)] + 9)
assert TileLayout(S[(1, 8, 8,) : (1, 1, 8,)]).is_direct_sum_left(TileLayout(S[(3, 4, 3,) : (1 @ laneid, 9, 3,)]).direct_sum(TileLayout(S[(1, 8, 8,) : (1, 1, 8,)]), [2, 1, 16, 2], [9, 2, 1, 2]), [2, 9, 1, 2, 16, 1, 2, 2], [2, 1, 16, 2]).canonicalize() == TileLayout(S[(3, 12,) : (1 @ laneid, 3,)])
assert TileLayout(S[(4, 3,) : (3, 1,)]).span('laneid') == 1
assert TileLayout(S[(3,) : (1,)] + R[(4,) : (4 @ warpid,)]).span() == 3
assert TileLayout(S[(4, 8, 1, 4,) : (1, 4, 4, 32,)] + R[(2,) : (4,)] + 5 @ laneid).apply(91)['m'] == 122
assert TileLayout(S[(4, 4,) : (4, 1,)] + R[(4,) : (4 @ laneid,)]).canonicalize() == TileLayout(S[(16,) : (1,)] + R[(4,) : (4 @ laneid,)])
assert TileLayout(S[(2, 16, 2, 8,) : (305, 19, 9, 1,)] + R[(4,) : (4 @ laneid,)]).group([8, 2, 2, 16])[1] == (0, 2, 3, 4, 6, )
assert TileLayout(S[(8, 4,) : (5, 1,)]).group([1, 1, 32, 1])[0].canonicalize() == TileLayout(S[(8, 4,) : (5, 1,)])
assert TileLayout(S[(4,) : (1,)]).apply(3)['m'] == 3
assert ComposeLayout(2, 3, 5, TileLayout(S[(1, 4,) : (8, 1,)]), False).tile_to([2, 4, 1], [2, 2, 1]).canonicalize() == ComposeLayout(2, 3, 5, TileLayout(S[(2, 2, 2,) : (2, 4, 1,)]), False)
assert TileLayout(S[(5, 5,) : (1, 5,)] + R[(2,) : (4 @ warpid,)]).span() == 25
assert TileLayout(S[(1, 3, 4, 8,) : (96, 2 @ laneid, 1 @ tid_in_wg, 1,)] + R[(2,) : (1,)] + 9).span() == 18
assert TileLayout(S[(8, 4, 6, 4,) : (96, 24, 4, 1,)]).is_tile_inner(ComposeLayout(3, 2, 3, TileLayout(S[(2,) : (1,)]), True).tile(TileLayout(S[(5, 3, 3,) : (9, 3, 1,)]), [15, 1, 3], [2, 1, 1]), [30, 1, 3], [2, 1, 1]) == None
assert TileLayout(S[(3,) : (1 @ wgid,)] + 3).is_tile_inner(TileLayout(S[(3,) : (1 @ wgid,)] + 3).tile(TileLayout(S[(16, 8,) : (8, 1,)]), [2, 8, 2, 4], [1, 1, 3, 1]), [2, 8, 6, 4], [1, 1, 3, 1]).canonicalize() == TileLayout(S[(128,) : (1,)])
assert TileLayout(S[(8, 1, 1,) : (1, 1, 1,)]).span('m') == 8
assert TileLayout(S[(5, 2, 3, 1,) : (4 @ wid_in_wg, 1 @ wid_in_wg, 2, 1,)] + R[(4,) : (4,)] + 4).size('laneid') == 1
assert TileLayout(S[(6,) : (1,)] + 2).slice([3, 1, 1, 2], [(2, 3), (0, 1), (0, 1), (0, 1)]).canonicalize() == TileLayout(S[(1,) : (1,)] + 6)
assert TileLayout(S[(3, 4,) : (8, 1,)] + R[(4,) : (4 @ laneid,)]).canonicalize() == TileLayout(S[(3, 4,) : (8, 1,)] + R[(4,) : (4 @ laneid,)])
assert TileLayout(S[(16, 2, 5, 6,) : (60, 30, 6, 1,)]).is_tile_inner(TileLayout(S[(16, 2, 5, 6,) : (60, 30, 6, 1,)]).tile(TileLayout(S[(5,) : (1,)]), [1, 1, 5], [1, 1, 960]), [1, 1, 4800], [1, 1, 960]).canonicalize() == TileLayout(S[(5,) : (1,)])
assert TileLayout(S[(16, 2, 2, 16,) : (64, 1, 32, 2,)]).group([2, 32, 1, 16])[0].canonicalize() == TileLayout(S[(16, 2, 32,) : (64, 1, 2,)])
assert TileLayout(S[(8,) : (1,)] + 2).canonicalize() == TileLayout(S[(8,) : (1,)] + 2)
assert TileLayout(S[(8, 3,) : (1, 12,)]).canonicalize() == TileLayout(S[(8, 3,) : (1, 12,)])
assert TileLayout(S[(6, 3,) : (1, 6,)]).apply(9)['m'] == 3
assert TileLayout(S[(16,) : (1 @ wid_in_wg,)] + R[(4,) : (1,)]).unpack(4) == TileLayout(S[(16, 4,) : (4 @ wid_in_wg, 1,)] + R[(4,) : (1,)])
assert TileLayout(S[(2, 2, 5, 5,) : (50, 25, 5, 1,)]).size() == 100
assert ComposeLayout(0, 3, 4, TileLayout(S[(3,) : (1,)]), True).slice([1, 3], [(0, 1), (1, 3)]).canonicalize() == ComposeLayout(0, 3, 4, TileLayout(S[(2,) : (1,)] + 1), True)
assert TileLayout(S[(2, 6, 2, 4,) : (24, 1, 48, 6,)] + 9).permute_dims([0, 3, 2, 1]) == TileLayout(S[(2, 4, 2, 6,) : (24, 6, 48, 1,)] + 9)
assert TileLayout(S[(5, 6, 2, 4,) : (8, 40, 4, 1,)] + R[(4,) : (1,)]).group([1, 240])[0].canonicalize() == TileLayout(S[(5, 6, 8,) : (8, 40, 1,)] + R[(4,) : (1,)])
assert TileLayout(S[(1, 1, 8,) : (1, 44, 5,)] + 8).direct_sum(TileLayout(S[(16, 4,) : (4, 1,)]), [32, 1, 2], [1, 8, 1]).canonicalize() == TileLayout(S[(32, 8, 2,) : (2, 5, 1,)] + 8)
assert ComposeLayout(0, 3, 3, TileLayout(S[(1, 16, 16,) : (324, 20, 1,)]), True).unpack(2) == ComposeLayout(1, 3, 3, TileLayout(S[(1, 16, 16, 2,) : (648, 40, 2, 1,)]), True)
assert TileLayout(S[(8,) : (1,)] + R[(4,) : (1 @ laneid,)] + 9).canonicalize() == TileLayout(S[(8,) : (1,)] + R[(4,) : (1 @ laneid,)] + 9)
assert TileLayout(S[(1, 3, 2, 1,) : (6, 2, 1, 1,)]).storage() == TileLayout(S[(1, 3, 2, 1,) : (6, 2, 1, 1,)])
assert TileLayout(S[(8, 2, 6, 2,) : (39, 19, 3, 1,)]).permute_dims([3, 0, 1, 2]) == TileLayout(S[(2, 8, 2, 6,) : (1, 39, 19, 3,)])
assert TileLayout(S[(2,) : (1,)]).canonicalize() == TileLayout(S[(2,) : (1,)])
assert TileLayout(S[(2,) : (1,)]).permute_dims([0]) == TileLayout(S[(2,) : (1,)])
assert TileLayout(S[(2, 4, 5, 8,) : (2 @ wid_in_wg, 5, 1, 40,)]).canonicalize() == TileLayout(S[(2, 20, 8,) : (2 @ wid_in_wg, 1, 40,)])
assert TileLayout(S[(6,) : (1,)]).pack(2) == TileLayout(S[(3,) : (1,)])
assert TileLayout(S[(1, 3, 4,) : (4, 4, 1,)] + 2 @ laneid).tile(TileLayout(S[(5,) : (1,)]), [1, 1, 5], [1, 1, 12]).canonicalize() == TileLayout(S[(60,) : (1,)] + 2 @ laneid)
assert TileLayout(S[(6,) : (1,)] + R[(2,) : (4 @ laneid,)] + 9).tile_to([2, 1, 4, 3], [1, 1, 2, 3]).canonicalize() == TileLayout(S[(4, 6,) : (15, 1,)] + R[(2,) : (4 @ laneid,)] + 9)
assert TileLayout(S[(4, 6,) : (1, 4,)] + R[(4,) : (4,)]).apply(10, 1, 0, 0, shape=[12, 2, 1, 1])['m'] == 15
assert ComposeLayout(2, 2, 2, TileLayout(S[(8, 1, 3,) : (5, 4, 1,)]), True).is_direct_sum_right(ComposeLayout(2, 2, 2, TileLayout(S[(8, 1, 3,) : (5, 4, 1,)]), True).direct_sum(TileLayout(S[(2, 1,) : (1, 2,)]), [1, 2, 1], [1, 8, 3]), [1, 1, 2, 8, 1, 3], [1, 8, 3]).canonicalize() == TileLayout(S[(2,) : (1,)])
assert TileLayout(S[(1, 2,) : (2, 1,)] + R[(2,) : (4 @ laneid,)] + 8 @ laneid).is_tile_inner(TileLayout(S[(1, 2,) : (2, 1,)] + R[(2,) : (4 @ laneid,)] + 8 @ laneid).tile(TileLayout(S[(2,) : (1,)]), [1, 2, 1], [1, 2, 1]), [1, 4, 1], [1, 2, 1]).canonicalize() == TileLayout(S[(2,) : (1,)])
assert TileLayout(S[(2, 1,) : (1, 1,)]).tile_to([6, 1], [2, 1]).canonicalize() == TileLayout(S[(6,) : (1,)])
assert TileLayout(S[(4,) : (1,)]).storage() == TileLayout(S[(4,) : (1,)])
assert TileLayout(S[(3,) : (1,)] + R[(4,) : (1,)]).slice([1, 3], [(0, 1), (0, 3)]).canonicalize() == TileLayout(S[(3,) : (1,)] + R[(4,) : (1,)])
assert ComposeLayout(0, 3, 5, TileLayout(S[(2, 1, 2, 2,) : (4, 4, 2, 1,)]), True).storage() == ComposeLayout(0, 3, 5, TileLayout(S[(2, 1, 2, 2,) : (4, 4, 2, 1,)]), True)
assert TileLayout(S[(16, 2,) : (2, 1,)]).permute_dims([1, 0]) == TileLayout(S[(2, 16,) : (1, 2,)])
assert TileLayout(S[(4, 2, 8,) : (16, 2 @ wid_in_wg, 4 @ tid_in_wg,)] + 2 @ laneid).unpack(4) == TileLayout(S[(4, 2, 8, 4,) : (64, 8 @ wid_in_wg, 16 @ tid_in_wg, 1,)] + 2 @ laneid)
assert TileLayout(S[(4, 2, 4,) : (3, 1, 13,)] + R[(4,) : (4 @ laneid,)]).apply(10, 0, 1, shape=[16, 1, 2])['m'] == 20
assert ComposeLayout(0, 0, 2, TileLayout(S[(3, 8,) : (12, 1,)]), True).canonicalize() == ComposeLayout(0, 0, 2, TileLayout(S[(3, 8,) : (12, 1,)]), True)
assert TileLayout(S[(6,) : (1,)] + 4).tile(TileLayout(S[(4, 8, 4, 6,) : (192, 24, 6, 1,)]), [1, 2, 1, 384], [1, 2, 3, 1]).canonicalize() == TileLayout(S[(2, 6, 384,) : (3840, 1, 10,)] + 4)
assert TileLayout(S[(4, 8, 1, 2,) : (17, 2, 1, 69,)]).storage() == TileLayout(S[(4, 8, 1, 2,) : (17, 2, 1, 69,)])
assert ComposeLayout(3, 2, 3, TileLayout(S[(3, 6, 4, 4,) : (220, 36, 8, 1,)] + 5), False).apply(69)['m'] == 94
assert ComposeLayout(3, 2, 3, TileLayout(S[(8, 2, 5,) : (34, 1, 6,)]), False).direct_sum(TileLayout(S[(4, 3,) : (1, 4,)]), [1, 4, 1, 3], [1, 1, 80, 1]).canonicalize() == ComposeLayout(3, 2, 3, TileLayout(S[(4, 8, 2, 5, 3,) : (1, 34, 1, 6, 4,)]), False)
assert ComposeLayout(2, 3, 4, TileLayout(S[(2, 1,) : (1, 3,)]), False).tile(TileLayout(S[(6, 8, 2,) : (16, 2, 1,)]), [4, 1, 24], [1, 1, 2]).canonicalize() == ComposeLayout(2, 3, 4, TileLayout(S[(192,) : (1,)]), False)
assert TileLayout(S[(6, 8, 16,) : (128, 16, 1,)]).tile_to([576, 4, 2, 2], [192, 2, 2, 1]).canonicalize() == TileLayout(S[(3, 192, 2, 4, 2,) : (3072, 4, 1536, 1, 768,)])
assert TileLayout(S[(2, 4, 2, 8,) : (1, 132, 6, 16,)]).canonicalize() == TileLayout(S[(2, 4, 2, 8,) : (1, 132, 6, 16,)])
assert TileLayout(S[(8, 6, 2,) : (10, 1, 84,)]).span() == 160
assert TileLayout(S[(6, 3, 4, 8,) : (96, 32, 8, 1,)] + 1).direct_sum(TileLayout(S[(8, 2, 3, 8,) : (24, 192, 8, 1,)]), [2, 1, 16, 12], [6, 96, 1, 1]).canonicalize() == TileLayout(S[(2, 576, 4, 2, 24,) : (96, 1, 24, 192, 1,)] + 1)
assert TileLayout(S[(8, 4, 2,) : (8, 2, 1,)] + 8).canonicalize() == TileLayout(S[(64,) : (1,)] + 8)
assert ComposeLayout(3, 3, 4, TileLayout(S[(2, 3, 4,) : (3, 1, 6,)]), False).tile(TileLayout(S[(16,) : (1,)]), [1, 8, 2, 1], [3, 4, 2, 1]).canonicalize() == ComposeLayout(3, 3, 4, TileLayout(S[(3, 8, 2, 2, 2, 2,) : (2, 48, 1, 12, 24, 6,)]), False)
assert TileLayout(S[(8, 6, 2,) : (12, 2, 1,)]).group([8, 1, 1, 12])[0].canonicalize() == TileLayout(S[(96,) : (1,)])
assert TileLayout(S[(8, 4, 2, 8,) : (1, 128, 64, 8,)] + R[(4,) : (4 @ warpid,)]).span() == 512
assert ComposeLayout(2, 0, 0, TileLayout(S[(6, 2, 4,) : (20, 8, 1,)]), True).storage() == ComposeLayout(2, 0, 0, TileLayout(S[(6, 2, 4,) : (20, 8, 1,)]), True)
assert TileLayout(S[(4, 8, 8, 4,) : (256, 32, 4, 1,)]).span('m') == 1024
assert TileLayout(S[(2, 8, 3,) : (4 @ wgid, 1 @ laneid, 4 @ wid_in_wg,)] + R[(4,) : (1 @ laneid,)]).slice([4, 4, 3, 1], [(0, 1), (1, 4), (0, 2), (0, 1)]).canonicalize() == TileLayout(S[(3, 2,) : (1 @ tx, 128 @ tx,)] + R[(4,) : (1 @ tx,)] + 1 @ tx)
assert TileLayout(S[(4, 5,) : (9, 1,)]).permute_dims([1, 0]) == TileLayout(S[(5, 4,) : (1, 9,)])
assert TileLayout(S[(8, 1, 1,) : (1, 1, 1,)] + 9 @ laneid).span() == 8
assert TileLayout(S[(5, 3, 16, 8,) : (384, 128, 8, 1,)]).canonicalize() == TileLayout(S[(1920,) : (1,)])
assert TileLayout(S[(4,) : (1,)] + R[(2,) : (1 @ laneid,)] + 3).apply(2, 0, 0, shape=[4, 1, 1])['m'] == 5
assert TileLayout(S[(2,) : (1,)] + R[(2,) : (4,)]).group([1, 2])[0].canonicalize() == TileLayout(S[(2,) : (1,)] + R[(2,) : (4,)])
assert TileLayout(S[(1,) : (1,)] + 3).is_direct_sum_right(TileLayout(S[(1,) : (1,)] + 3).direct_sum(TileLayout(S[(2, 4, 8,) : (32, 8, 1,)]), [1, 64], [1, 1]), [1, 1, 64, 1], [1, 1]).canonicalize() == TileLayout(S[(64,) : (1,)])
assert TileLayout(S[(2, 6,) : (10, 1,)] + R[(2,) : (4,)]).storage() == TileLayout(S[(2, 6,) : (10, 1,)] + R[(2,) : (4,)])
assert TileLayout(S[(3,) : (1,)] + R[(2,) : (4 @ laneid,)]).size('m') == 3
assert TileLayout(S[(2, 2,) : (2, 1,)]).is_tile_outer(TileLayout(S[(3, 6,) : (6, 1,)] + 5).tile(TileLayout(S[(2, 2,) : (2, 1,)]), [1, 1, 2, 2], [1, 1, 18, 1]), [1, 1, 36, 2], [1, 1, 2, 2]).canonicalize() == TileLayout(S[(18,) : (1,)] + 5)
assert TileLayout(S[(2,) : (1,)]).span('m') == 2
assert TileLayout(S[(4, 4, 4, 4,) : (85, 21, 5, 1,)]).slice([8, 8, 4, 1], [(0, 4), (0, 2), (0, 1), (0, 1)]).canonicalize() == TileLayout(S[(2, 2, 2,) : (85, 42, 5,)])
assert ComposeLayout(1, 0, 1, TileLayout(S[(8, 3, 4, 4,) : (64, 21, 5, 1,)]), True).canonicalize() == ComposeLayout(1, 0, 1, TileLayout(S[(8, 3, 4, 4,) : (64, 21, 5, 1,)]), True)
assert TileLayout(S[(2, 8, 4,) : (32, 4, 1,)] + R[(4,) : (4,)] + 5).tile_to([6, 2, 8, 16], [2, 1, 4, 8]).canonicalize() == TileLayout(S[(3, 2, 4, 4, 2, 8,) : (648, 32, 162, 8, 81, 1,)] + R[(4,) : (4,)] + 5)
assert TileLayout(S[(4,) : (2 @ warpid,)]).span() == 1
assert TileLayout(S[(2, 6,) : (6, 1,)] + R[(2,) : (4 @ laneid,)] + 1).tile_to([3, 12], [1, 12]).canonicalize() == TileLayout(S[(3, 12,) : (13, 1,)] + R[(2,) : (4 @ laneid,)] + 1)
assert TileLayout(S[(2, 2, 4, 3,) : (24, 12, 3, 1,)]).slice([2, 3, 2, 4], [(0, 2), (0, 3), (0, 2), (0, 3)]).canonicalize() == TileLayout(S[(12, 3,) : (4, 1,)])
assert TileLayout(S[(1,) : (1,)] + 9).apply(0)['m'] == 9
assert TileLayout(S[(1,) : (1,)]).size('m') == 1
assert TileLayout(S[(8,) : (1,)]).size('laneid') == 1
assert TileLayout(S[(8,) : (1,)] + 8).group([8, 1])[0].canonicalize() == TileLayout(S[(8,) : (1,)] + 8)
assert TileLayout(S[(4, 2, 8,) : (28, 12, 1,)] + 8 @ laneid).tile(TileLayout(S[(4,) : (1,)]), [1, 1, 4], [64, 1, 1]).canonicalize() == TileLayout(S[(4, 2, 8, 4,) : (28, 12, 1, 104,)] + 8 @ laneid)
assert TileLayout(S[(4, 4, 1, 1,) : (1, 4, 16, 16,)] + 9).tile_to([1, 4, 4, 8], [1, 2, 2, 4]).canonicalize() == TileLayout(S[(2, 2, 2, 2, 2, 4,) : (100, 2, 50, 1, 25, 4,)] + 9)
assert TileLayout(S[(6, 2, 5,) : (10, 5, 1,)] + 3 @ laneid).is_direct_sum_right(TileLayout(S[(6, 2, 5,) : (10, 5, 1,)] + 3 @ laneid).direct_sum(TileLayout(S[(4, 16,) : (1, 5,)]), [1, 4, 8, 2], [1, 4, 5, 3]), [1, 1, 4, 4, 8, 5, 2, 3], [1, 4, 5, 3]).canonicalize() == TileLayout(S[(4, 16,) : (1, 5,)])
assert TileLayout(S[(16, 2, 2,) : (4, 2, 1,)] + R[(2,) : (1 @ laneid,)]).size() == 64
assert TileLayout(S[(8, 2, 3,) : (1, 1 @ wid_in_wg, 16,)] + R[(4,) : (4,)]).apply(0, 12, 0, 0, shape=[1, 24, 1, 2])['wid_in_wg'] == 0
assert TileLayout(S[(8,) : (1,)] + 3).slice([2, 2, 2, 1], [(0, 2), (0, 2), (0, 2), (0, 1)]).canonicalize() == TileLayout(S[(8,) : (1,)] + 3)
assert TileLayout(S[(6, 8, 2,) : (16, 2, 1,)]).size() == 96
assert TileLayout(S[(5, 1,) : (2, 1,)]).is_tile_outer(TileLayout(S[(16,) : (1,)]).tile(TileLayout(S[(5, 1,) : (2, 1,)]), [1, 1, 1, 5], [1, 8, 1, 2]), [1, 8, 1, 10], [1, 1, 1, 5]).canonicalize() == TileLayout(S[(16,) : (1,)])
assert TileLayout(S[(8,) : (1,)] + R[(2,) : (1 @ laneid,)] + 7 @ laneid).unpack(4) == TileLayout(S[(8, 4,) : (4, 1,)] + R[(2,) : (1 @ laneid,)] + 7 @ laneid)
assert TileLayout(S[(8,) : (1,)]).is_direct_sum_right(TileLayout(S[(8,) : (1,)]).direct_sum(TileLayout(S[(6, 2,) : (2, 1,)]), [3, 1, 2, 2], [1, 1, 8, 1]), [3, 1, 1, 1, 2, 8, 2, 1], [1, 1, 8, 1]).canonicalize() == TileLayout(S[(12,) : (1,)])
assert TileLayout(S[(2, 4,) : (1, 6,)] + 7).is_direct_sum_right(TileLayout(S[(2, 4,) : (1, 6,)] + 7).direct_sum(TileLayout(S[(2, 3, 2, 6,) : (7, 31, 15, 1,)]), [1, 1, 1, 72], [1, 4, 2, 1]), [1, 1, 1, 4, 1, 2, 72, 1], [1, 4, 2, 1]).canonicalize() == TileLayout(S[(2, 3, 2, 6,) : (7, 31, 15, 1,)])
assert TileLayout(S[(16,) : (1,)]).slice([2, 2, 1, 4], [(0, 1), (1, 2), (0, 1), (0, 4)]).canonicalize() == TileLayout(S[(4,) : (1,)] + 4)
assert ComposeLayout(0, 0, 2, TileLayout(S[(16, 2, 4,) : (1, 64, 16,)]), True).direct_sum(TileLayout(S[(3, 2,) : (2, 1,)]), [1, 1, 3, 2], [1, 4, 2, 16]).canonicalize() == ComposeLayout(0, 0, 2, TileLayout(S[(4, 3, 4, 2, 8,) : (4, 2, 1, 1, 16,)]), True)
assert ComposeLayout(2, 0, 1, TileLayout(S[(4, 2, 2,) : (7, 3, 1,)]), True).slice([2, 1, 4, 2], [(1, 2), (0, 1), (2, 4), (0, 2)]).canonicalize() == ComposeLayout(2, 0, 1, TileLayout(S[(2, 2,) : (3, 1,)] + 21), True)
assert TileLayout(S[(2,) : (1,)]).direct_sum(TileLayout(S[(6, 8,) : (9, 1,)]), [1, 2, 6, 4], [1, 1, 2, 1]).canonicalize() == TileLayout(S[(6, 2, 2, 4,) : (9, 4, 1, 1,)])
assert TileLayout(S[(5, 2,) : (1 @ warpid, 1,)]).direct_sum(TileLayout(S[(4, 3,) : (3, 1,)]), [1, 3, 4, 1], [5, 1, 2, 1]).canonicalize() == TileLayout(S[(5, 12, 2,) : (1 @ warpid, 1, 1,)])
assert TileLayout(S[(4,) : (1,)]).pack(2) == TileLayout(S[(2,) : (1,)])
assert ComposeLayout(3, 0, 0, TileLayout(S[(1, 16,) : (1, 1,)] + 1), True).storage() == ComposeLayout(3, 0, 0, TileLayout(S[(1, 16,) : (1, 1,)] + 1), True)
assert ComposeLayout(1, 0, 1, TileLayout(S[(3, 1, 16,) : (16, 16, 1,)]), True).canonicalize() == ComposeLayout(1, 0, 1, TileLayout(S[(48,) : (1,)]), True)
assert TileLayout(S[(1, 4, 16,) : (64, 16, 1,)] + R[(2,) : (4 @ laneid,)]).unpack(2) == TileLayout(S[(1, 4, 16, 2,) : (128, 32, 2, 1,)] + R[(2,) : (4 @ laneid,)])
assert ComposeLayout(1, 1, 3, TileLayout(S[(3,) : (1,)]), True).direct_sum(TileLayout(S[(2, 2, 2, 2,) : (36, 16, 6, 1,)]), [4, 4, 1], [1, 3, 1]).canonicalize() == ComposeLayout(1, 1, 3, TileLayout(S[(2, 2, 2, 2, 3,) : (36, 16, 6, 1, 1,)]), True)
assert TileLayout(S[(8, 2,) : (6, 1,)]).is_tile_outer(TileLayout(S[(8, 4, 2,) : (1 @ tid_in_wg, 16, 1,)] + 4).tile(TileLayout(S[(8, 2,) : (6, 1,)]), [1, 4, 4, 1], [1, 1, 8, 8]), [1, 4, 32, 8], [1, 4, 4, 1]).canonicalize() == TileLayout(S[(8, 4, 2,) : (1 @ tid_in_wg, 16, 1,)] + 4)
assert TileLayout(S[(16,) : (1,)]).group([8, 1, 1, 2])[0].canonicalize() == TileLayout(S[(16,) : (1,)])
assert TileLayout(S[(8, 2, 16, 1,) : (1, 161, 10, 9,)] + 9 @ laneid).slice([1, 1, 16, 16], [(0, 1), (0, 1), (0, 11), (0, 16)]) == None
assert TileLayout(S[(1,) : (1,)]).apply(0)['m'] == 0
assert TileLayout(S[(2,) : (1,)]).storage() == TileLayout(S[(2,) : (1,)])
assert TileLayout(S[(1,) : (1,)] + 1).span() == 2
assert TileLayout(S[(8, 3, 2, 2,) : (12, 4, 2, 1,)]).is_tile_inner(TileLayout(S[(8, 3, 2, 2,) : (12, 4, 2, 1,)]).tile(TileLayout(S[(4, 2,) : (2, 1,)]), [1, 1, 8, 1], [48, 1, 1, 2]), [48, 1, 8, 2], [48, 1, 1, 2]).canonicalize() == TileLayout(S[(8,) : (1,)])
assert TileLayout(S[(1, 4, 6, 5,) : (120, 30, 5, 1,)] + R[(4,) : (1 @ warpid,)]).group([8, 15, 1, 1])[0].canonicalize() == TileLayout(S[(120,) : (1,)] + R[(4,) : (1 @ warpid,)])
assert TileLayout(S[(6, 5, 4,) : (9, 1, 58,)] + R[(4,) : (1 @ warpid,)]).apply(104)['m'] == 46
assert TileLayout(S[(6, 1, 4,) : (4, 4, 1,)]).canonicalize() == TileLayout(S[(24,) : (1,)])
assert TileLayout(S[(16, 4, 16, 3,) : (192, 48, 2 @ wgid, 1,)]).group([2, 1536, 1])[0].canonicalize() == TileLayout(S[(64, 16, 3,) : (48, 2 @ wgid, 1,)])
assert TileLayout(S[(2, 2, 5,) : (10, 5, 1,)] + 3).unpack(2) == TileLayout(S[(2, 2, 5, 2,) : (20, 10, 2, 1,)] + 3)
assert TileLayout(S[(6,) : (1 @ tid_in_wg,)] + 9).is_direct_sum_right(TileLayout(S[(6,) : (1 @ tid_in_wg,)] + 9).direct_sum(TileLayout(S[(2, 3,) : (3, 1,)]), [1, 1, 6, 1], [1, 2, 1, 3]), [1, 1, 1, 2, 6, 1, 1, 3], [1, 2, 1, 3]).canonicalize() == TileLayout(S[(6,) : (1,)])
assert TileLayout(S[(16, 5, 6, 8,) : (240, 48, 8, 1,)] + R[(2,) : (1,)] + 6 @ laneid).apply(2871)['m'] == 2871
assert TileLayout(S[(8,) : (1,)] + R[(2,) : (1 @ laneid,)] + 5 @ laneid).apply(1, 0, 0, 0, shape=[2, 2, 1, 2])['m'] == 4
assert TileLayout(S[(8,) : (1,)] + R[(4,) : (1,)] + 8).apply(2)['m'] == 10
assert TileLayout(S[(3, 3, 2, 8,) : (48, 16, 8, 1,)] + R[(2,) : (1 @ laneid,)]).group([144, 1])[1] == (0, 4, 5, )
assert TileLayout(S[(4, 16, 8, 2,) : (3, 13, 209, 1,)]).tile(TileLayout(S[(6, 5, 1, 4,) : (20, 4, 4, 1,)]), [1, 12, 10, 1], [32, 16, 2, 1]).canonicalize() == TileLayout(S[(4, 8, 12, 2, 8, 10, 2,) : (3, 26, 16690, 13, 209, 1669, 1,)])
assert TileLayout(S[(3,) : (1,)]).tile_to([6, 2, 2], [3, 1, 1]).canonicalize() == TileLayout(S[(2, 3, 4,) : (12, 1, 3,)])
assert TileLayout(S[(3, 8,) : (8, 1,)]).is_tile_outer(TileLayout(S[(6, 6,) : (6, 1,)]).tile(TileLayout(S[(3, 8,) : (8, 1,)]), [4, 1, 6], [9, 1, 4]), [36, 1, 24], [4, 1, 6]).canonicalize() == TileLayout(S[(36,) : (1,)])
assert ComposeLayout(1, 2, 4, TileLayout(S[(8, 4,) : (4, 1,)]), True).pack(2) == ComposeLayout(0, 2, 4, TileLayout(S[(8, 2,) : (2, 1,)]), True)
assert TileLayout(S[(5,) : (1,)] + R[(2,) : (1,)]).group([1, 5, 1])[1] == (0, 1, 2, 3, )
assert ComposeLayout(3, 1, 3, TileLayout(S[(8, 8,) : (12, 1,)]), True).slice([2, 8, 4, 1], [(0, 2), (5, 8), (2, 3), (0, 1)]) == None
assert TileLayout(S[(16, 3,) : (1, 1 @ warpid,)] + 1).slice([16, 3, 1], [(15, 16), (0, 3), (0, 1)]).canonicalize() == TileLayout(S[(3,) : (1 @ warpid,)] + 16)
assert ComposeLayout(0, 1, 3, TileLayout(S[(2, 16, 3, 8,) : (384, 24, 8, 1,)]), True).storage() == ComposeLayout(0, 1, 3, TileLayout(S[(2, 16, 3, 8,) : (384, 24, 8, 1,)]), True)
assert TileLayout(S[(8, 3, 8,) : (24, 8, 1,)] + R[(2,) : (4 @ laneid,)]).tile_to([3, 3, 192, 6], [1, 1, 96, 2]).canonicalize() == TileLayout(S[(18, 96, 3, 2,) : (576, 2, 192, 1,)] + R[(2,) : (4 @ laneid,)])


@T.prim_func
def nothing():
    T.device_entry()
    T.thread_id([32])
