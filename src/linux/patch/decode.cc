#include "linux/patch/decode.h"

#include <Zydis/Decoder.h>

namespace upcall::patch {
namespace {

constexpr ZydisDecoder kDecoder = {ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64,
                                   1u << ZYDIS_DECODER_MODE_MINIMAL | 1u << ZYDIS_DECODER_MODE_MPX |
                                       1u << ZYDIS_DECODER_MODE_CET | 1u << ZYDIS_DECODER_MODE_LZCNT |
                                       1u << ZYDIS_DECODER_MODE_TZCNT | 1u << ZYDIS_DECODER_MODE_CLDEMOTE |
                                       1u << ZYDIS_DECODER_MODE_IPREFETCH};

Kind kind_of(const ZydisDecodedInstruction& z) {
  switch (z.mnemonic) {
    case ZYDIS_MNEMONIC_SYSCALL:
      return Kind::syscall;
    case ZYDIS_MNEMONIC_CALL:
      return Kind::call;
    case ZYDIS_MNEMONIC_JMP:
      return z.raw.imm[0].is_relative ? Kind::jump : Kind::jump_indirect;
    case ZYDIS_MNEMONIC_JCXZ:
    case ZYDIS_MNEMONIC_JECXZ:
    case ZYDIS_MNEMONIC_JRCXZ:
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE:
    case ZYDIS_MNEMONIC_XBEGIN:
      return Kind::jump_count;
    case ZYDIS_MNEMONIC_RET:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_INT3:
      return Kind::end;
    default:
      return z.raw.imm[0].is_relative ? Kind::jump_if : Kind::plain;
  }
}

// What follows an opcode in decode_common's subset.
enum Shape : uint8_t {
  X = 0,  // not in the subset
  N,      // nothing
  M,      // ModRM
  B,      // imm8
  Z,      // imm32, imm16 after 66
  MB,     // ModRM, imm8
  MZ,     // ModRM, imm32 or imm16
  V,      // mov reg, imm: imm64 after REX.W
  S,      // rel8
  L,      // rel32
  G,      // a group, or a prefix makes another instruction of it: see group()
};

// clang-format off
constexpr Shape kOneByte[256] = {
    M, M, M, M, B, Z, X, X, M, M, M, M, B, Z, X, X,   // 00
    M, M, M, M, B, Z, X, X, M, M, M, M, B, Z, X, X,   // 10
    M, M, M, M, B, Z, X, X, M, M, M, M, B, Z, X, X,   // 20
    M, M, M, M, B, Z, X, X, M, M, M, M, B, Z, X, X,   // 30
    X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,   // 40 REX
    N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N,   // 50 push, pop
    X, X, X, M, X, X, X, X, Z, MZ, B, MB, X, X, X, X, // 60
    S, S, S, S, S, S, S, S, S, S, S, S, S, S, S, S,   // 70 jcc
    MB, MZ, X, MB, M, M, M, M, M, M, M, M, X, G, X, X, // 80
    N, N, N, N, N, N, N, N, N, N, X, X, N, N, N, N,   // 90
    X, X, X, X, N, N, N, N, B, Z, N, N, N, N, N, N,   // a0
    B, B, B, B, B, B, B, B, V, V, V, V, V, V, V, V,   // b0
    MB, MB, X, N, X, X, G, G, X, N, X, X, N, X, X, X, // c0
    M, M, M, M, X, X, X, X, X, X, X, X, X, X, X, X,   // d0
    S, S, S, S, X, X, X, X, L, L, X, S, X, X, X, X,   // e0
    X, X, X, X, N, N, G, G, N, N, N, N, N, N, G, G,   // f0
};

constexpr Shape kTwoByte[256] = {
    X, X, X, X, X, N, X, X, X, X, X, N, X, X, X, X,   // 00 syscall, ud2
    M, M, X, X, X, X, X, X, X, X, X, X, X, X, X, M,   // 10 movups, nop
    X, X, X, X, X, X, X, X, G, G, X, X, X, X, X, X,   // 20 movaps
    X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,   // 30
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,   // 40 cmovcc
    X, X, X, X, X, X, X, G, X, X, X, X, X, X, X, X,   // 50 xorps
    X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, G,   // 60 movdqa
    X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, G,   // 70 movdqa
    L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L,   // 80 jcc
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,   // 90 setcc
    X, X, N, M, MB, M, X, X, X, X, X, M, MB, M, X, M, // a0
    M, M, X, M, X, X, M, M, X, X, G, M, M, M, M, M,   // b0
    M, M, X, X, X, X, X, X, N, N, N, N, N, N, N, N,   // c0 bswap
    X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,   // d0
    X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,   // e0
    X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,   // f0
};
// clang-format on

struct Prefixes {
  bool operand16, repeat, other;
};

// Members of groups that are in the subset.
Shape group(bool two, uint8_t op, uint8_t modrm, const Prefixes& prefix) {
  unsigned reg = modrm >> 3 & 7;
  bool memory = modrm < 0xc0;
  if (two) switch (op) {
      case 0x28:
      case 0x29:
      case 0x57:
        return prefix.repeat ? X : M;
      case 0x6f:
      case 0x7f:
        return prefix.repeat == prefix.operand16 ? X : M;
      case 0xba:
        return reg >= 4 ? MB : X;
      default:
        return X;
    }
  switch (op) {
    case 0x8d:
      return memory ? M : X;
    case 0xc6:
      return reg == 0 ? MB : X;
    case 0xc7:
      return reg == 0 ? MZ : X;
    case 0xf6:
      return reg == 0 ? MB : reg >= 2 ? M : X;
    case 0xf7:
      return reg == 0 ? MZ : reg >= 2 ? M : X;
    case 0xfe:
      return reg < 2 ? M : X;
    case 0xff:
      return reg == 3 || reg == 5 || reg == 7 ? X : M;
    default:
      return X;
  }
}

template <typename T>
T load(const uint8_t* p) {
  T v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

Kind kind_of(bool two, uint8_t op, uint8_t modrm) {
  if (two)
    return op == 0x05            ? Kind::syscall
           : op == 0x0b          ? Kind::end
           : (op & 0xf0) == 0x80 ? Kind::jump_if
                                 : Kind::plain;
  switch (op) {
    case 0xc3:
    case 0xcc:
    case 0xf4:
      return Kind::end;
    case 0xe0:
    case 0xe1:
    case 0xe2:
    case 0xe3:
      return Kind::jump_count;
    case 0xe8:
      return Kind::call;
    case 0xe9:
    case 0xeb:
      return Kind::jump;
    case 0xff:
      return (modrm >> 3 & 7) == 2 ? Kind::call : (modrm >> 3 & 7) == 4 ? Kind::jump_indirect : Kind::plain;
    default:
      return (op & 0xf0) == 0x70 ? Kind::jump_if : Kind::plain;
  }
}

}  // namespace

bool decode_common(const uint8_t* bytes, size_t length, uint32_t offset, Insn* out) {
  if (length < 15) return false;  // bounds are checked the slow way
  const uint8_t* p = bytes;
  Prefixes prefix{};
  for (unsigned i = 0; i < 4; ++i, ++p) {
    if (*p == 0x66)
      prefix.operand16 = true;
    else if (*p == 0xf3)
      prefix.repeat = true;
    else if (*p == 0x2e || *p == 0x64 || *p == 0x65)
      prefix.other = true;
    else
      break;
  }
  uint8_t rex = (*p & 0xf0) == 0x40 ? *p++ : 0;
  bool two = *p == 0x0f;
  if (two) ++p;
  uint8_t op = *p++, modrm = *p;
  Shape shape = two ? kTwoByte[op] : kOneByte[op];
  if (shape == G) shape = group(two, op, modrm, prefix);
  if (shape == X) return false;
  // Prefixes that turn an instruction into another, or are ambiguous before branches.
  Kind kind = kind_of(two, op, modrm);
  if (kind != Kind::plain && (prefix.operand16 || prefix.repeat)) return false;
  if (two && prefix.repeat && op >= 0xa0) return false;
  *out = {};
  out->offset = offset;
  out->kind = kind;
  if (shape == M || shape == MB || shape == MZ) {
    ++p;
    unsigned mod = modrm >> 6, rm = modrm & 7;
    if (mod != 3) {
      out->memory = true;
      bool wide = mod == 2;
      if (rm == 4) {
        wide |= mod == 0 && (*p & 7) == 5;
        ++p;
      } else if (mod == 0 && rm == 5) {
        out->rip_relative = wide = true;
      }
      if (wide) {
        out->disp_offset = static_cast<uint8_t>(p - bytes);
        p += 4;
      } else if (mod == 1) {
        ++p;
      }
    }
  }
  switch (shape) {
    case B:
    case MB:
      ++p;
      break;
    case Z:
    case MZ:
      p += prefix.operand16 && !(rex & 8) ? 2 : 4;
      break;
    case V:
      p += rex & 8 ? 8 : prefix.operand16 ? 2 : 4;
      break;
    case S:
      ++p;
      break;
    case L:
      p += 4;
      break;
    default:
      break;
  }
  if (p - bytes > 15) return false;
  out->length = static_cast<uint8_t>(p - bytes);
  if (shape == S) out->target = static_cast<intptr_t>(offset) + out->length + static_cast<int8_t>(p[-1]);
  if (shape == L) out->target = static_cast<intptr_t>(offset) + out->length + load<int32_t>(p - 4);
  return true;
}

bool decode_any(const uint8_t* bytes, size_t length, uint32_t offset, Insn* out) {
  ZydisDecodedInstruction z;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&kDecoder, nullptr, bytes, length, &z))) return false;
  bool has_modrm = z.attributes & ZYDIS_ATTRIB_HAS_MODRM;
  *out = {};
  out->offset = offset;
  out->length = z.length;
  out->kind = kind_of(z);
  out->memory = has_modrm && z.raw.modrm.mod != 3;
  out->rip_relative = out->memory && z.raw.modrm.mod == 0 && z.raw.modrm.rm == 5;
  if (out->memory && z.raw.disp.size == 32) out->disp_offset = z.raw.disp.offset;
  out->endbr = z.mnemonic == ZYDIS_MNEMONIC_ENDBR64;
  if (z.raw.imm[0].is_relative) out->target = static_cast<intptr_t>(offset) + z.length + z.raw.imm[0].value.s;
  return true;
}

bool decode(const uint8_t* bytes, size_t length, uint32_t offset, Insn* out) {
  return decode_common(bytes, length, offset, out) || decode_any(bytes, length, offset, out);
}

bool all_padding(const uint8_t* p, const uint8_t* end) {
  while (p < end) {
    ZydisDecodedInstruction z;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&kDecoder, nullptr, p, static_cast<size_t>(end - p), &z)))
      return false;
    if (z.mnemonic != ZYDIS_MNEMONIC_NOP && z.mnemonic != ZYDIS_MNEMONIC_INT3) return false;
    p += z.length;
  }
  return true;
}

}  // namespace upcall::patch
