# What a compiler and a linker can do against an overflow, as far as those at hand know it (macOS' linker knows none of
# the linker's part). Two libraries that carry flags only: `hardened` for every extension, and `hardened_jumps`, which
# marks the targets of indirect jumps and shadows return addresses: not for the model build, which switches stacks.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)

add_library(hardened INTERFACE)
add_library(hardened_jumps INTERFACE)

# pystream_flag(target flag): the flag, if the compiler takes it without a warning.
function(pystream_flag target flag)
  string(MAKE_C_IDENTIFIER "HAS${flag}" has)
  check_c_compiler_flag("-Werror ${flag}" ${has})
  if(${has})
    target_compile_options(${target} INTERFACE ${flag})
  endif()
endfunction()

pystream_flag(hardened -fstack-protector-strong)
pystream_flag(hardened -fstack-clash-protection)
pystream_flag(hardened_jumps -fcf-protection=full)          # x86-64
pystream_flag(hardened_jumps -mbranch-protection=standard)  # aarch64

foreach(keyword relro now noexecstack)
  check_linker_flag(C "-Wl,-z,${keyword}" HAS_LINKER_${keyword})
  if(HAS_LINKER_${keyword})
    target_link_options(hardened INTERFACE "-Wl,-z,${keyword}")
  endif()
endforeach()

# The C library checks calls whose sizes the compiler knows, at level 3 also sizes known only as the program runs. It
# does so in optimised builds only, and a compiler may have a level of its own: undefined first. A C library that does
# not know level 3 says so by a warning.
set(fortify_level 2)
set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
check_c_source_compiles("#include <string.h>\nint main(void) { return 0; }" HAS_FORTIFY_3)
unset(CMAKE_REQUIRED_FLAGS)
if(HAS_FORTIFY_3)
  set(fortify_level 3)
endif()
set(optimised "$<CONFIG:Release,RelWithDebInfo,MinSizeRel>")
target_compile_options(hardened INTERFACE "$<${optimised}:-U_FORTIFY_SOURCE>"
                                          "$<${optimised}:-D_FORTIFY_SOURCE=${fortify_level}>")
