# The CUDA driver's header (cuda.h, 12.8 or newer), from the NVIDIA packages beside PyTorch, or from a toolkit where
# SPILLWAY_CUDA_INCLUDE says it is. The driver itself is found when a program runs. Without the header what needs it is left out.
set(SPILLWAY_CUDA_INCLUDE "" CACHE STRING "Folder of cuda.h; empty: that of SPILLWAY_PYTHON's packages")
set(spillway_cuda_include "${SPILLWAY_CUDA_INCLUDE}")
if(SPILLWAY_PYTHON AND NOT spillway_cuda_include)
  execute_process(
    COMMAND ${SPILLWAY_PYTHON} -c "import importlib.util as u
found = u.find_spec('nvidia')
print(*(found.submodule_search_locations if found else []), sep=';', end='')"
    OUTPUT_VARIABLE spillway_nvidia_folders COMMAND_ERROR_IS_FATAL ANY)
  foreach(folder ${spillway_nvidia_folders})
    file(GLOB headers ${folder}/*/include/cuda.h)
    foreach(header ${headers})
      cmake_path(GET header PARENT_PATH spillway_cuda_include)
    endforeach()
  endforeach()
endif()
if(spillway_cuda_include)
  file(STRINGS ${spillway_cuda_include}/cuda.h spillway_cuda_version REGEX "^#define CUDA_VERSION [0-9]+")
  string(REGEX REPLACE "[^0-9]" "" spillway_cuda_version "${spillway_cuda_version}")
  if(spillway_cuda_version LESS 12080)
    message(STATUS "${spillway_cuda_include} has an old cuda.h (${spillway_cuda_version}): what needs CUDA is left out")
    set(spillway_cuda_include "")
  endif()
endif()
