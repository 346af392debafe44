# One static library and one test program per folder, all with the same flags.

add_library(spillway_flags INTERFACE)
target_compile_features(spillway_flags INTERFACE cxx_std_23)
target_include_directories(spillway_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(spillway_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow)
if(SPILLWAY_WERROR)
  target_compile_options(spillway_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # As g++ means -Wconversion for C++; and g++ 12's library instantiates what it deprecates itself.
  target_compile_options(spillway_flags INTERFACE -Wno-sign-conversion -Wno-deprecated-declarations)
endif()
if(SPILLWAY_SANITIZE)
  target_compile_options(spillway_flags INTERFACE -fsanitize=${SPILLWAY_SANITIZE} -fno-sanitize-recover=all
                                                  -fno-omit-frame-pointer)
  target_link_options(spillway_flags INTERFACE -fsanitize=${SPILLWAY_SANITIZE})
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")  # -g1 names functions and lines; variables cost a fifth of the build
set(CMAKE_CXX_FLAGS_DEBUG "-g1")

# A test's name and label say which build it is from, so that one CTest run can hold several builds.
if(SPILLWAY_SANITIZE MATCHES "thread")
  set(spillway_test_prefix "tsan.")
  set(spillway_build_label "tsan")
elseif(SPILLWAY_SANITIZE MATCHES "address")
  set(spillway_test_prefix "asan.")
  set(spillway_build_label "asan")
endif()
# g++ 12's sanitizer runtimes refuse to start where the kernel randomises addresses with 32 bits, so tests run without
# randomisation where a process may ask for that (in many containers it may not, and need not).
if(SPILLWAY_SANITIZE)
  execute_process(COMMAND setarch -R true RESULT_VARIABLE spillway_setarch_status OUTPUT_QUIET ERROR_QUIET)
  if(spillway_setarch_status EQUAL 0)
    set(CMAKE_CROSSCOMPILING_EMULATOR setarch -R)
  endif()
endif()

add_custom_target(unit_tests)  # all programs of spillway_test()

# spillway_library(NAME SOURCES a.cpp ... LIBS other ...) makes the static library spillway_NAME.
function(spillway_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_library(spillway_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(spillway_${name} PUBLIC spillway_flags ${ARG_LIBS})
endfunction()

# spillway_test(NAME SOURCES a_test.cpp ... LIBS ... [LABEL unit] [TIMEOUT 120] [SERIAL] [THREADS]) makes one GoogleTest
# program whose tests CTest runs one by one; SERIAL ones have the machine to themselves. In a sanitizer build the label is
# its name. ThreadSanitizer sees only those that say THREADS: there is no race to find in code of one thread.
function(spillway_test name)
  if(NOT SPILLWAY_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "SERIAL;THREADS" "LABEL;TIMEOUT" "SOURCES;LIBS" ${ARGN})
  if(SPILLWAY_SANITIZE MATCHES "thread" AND NOT ARG_THREADS)
    return()
  endif()
  set(label unit)
  if(spillway_build_label)
    set(label ${spillway_build_label})
  elseif(ARG_LABEL)
    set(label ${ARG_LABEL})
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  add_dependencies(unit_tests ${name})
  target_compile_options(${name} PRIVATE -O0)  # half the time to build; the code they test is optimised as it ships
  target_link_libraries(${name} PRIVATE spillway_flags ${ARG_LIBS} rapidcheck GTest::gtest GTest::gtest_main)
  gtest_discover_tests(${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                       TEST_PREFIX "${spillway_test_prefix}"
                       PROPERTIES LABELS ${label} TIMEOUT ${ARG_TIMEOUT} RUN_SERIAL "${ARG_SERIAL}")
endfunction()

# spillway_command_test(NAME COMMAND program argument ... [LABEL e2e] [TIMEOUT 300] [SERIAL] [LOCK name]) registers any other
# program as one test: status 0 passes, 77 is a skip that has said why. It runs in the project's root; of those with a LOCK
# one at a time.
function(spillway_command_test name)
  if(NOT SPILLWAY_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "SERIAL" "LABEL;TIMEOUT;LOCK" "COMMAND" ${ARGN})
  if(SPILLWAY_SANITIZE MATCHES "thread")
    return()
  endif()
  set(label e2e)
  if(spillway_build_label)
    set(label ${spillway_build_label})
  elseif(ARG_LABEL)
    set(label ${ARG_LABEL})
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_test(NAME ${spillway_test_prefix}${name} COMMAND ${ARG_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${spillway_test_prefix}${name} PROPERTIES LABELS ${label} TIMEOUT ${ARG_TIMEOUT}
                       RUN_SERIAL "${ARG_SERIAL}" RESOURCE_LOCK "${ARG_LOCK}" SKIP_RETURN_CODE 77
                       ENVIRONMENT "SPILLWAY=${PROJECT_BINARY_DIR}/spillway;SPILLWAY_PYTHON=${SPILLWAY_PYTHON}")
endfunction()
