/** WebGL2 in few words: programs, textures, targets and buffers that grow. */

export class Program {
  constructor(gl, vertex, fragment, defines = "") {
    this.gl = gl;
    this.program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, `#version 300 es\n${defines}\nprecision highp float;\nprecision highp int;\n${source}`);
      gl.compileShader(shader);
      gl.attachShader(this.program, shader);
    }
    gl.linkProgram(this.program);
    this.places = null;
  }

  /** Only at first use: until then the driver may compile several at once. */
  #found() {
    const { gl, program } = this;
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
      const logs = gl.getAttachedShaders(program).map((shader) => gl.getShaderInfoLog(shader));
      throw new Error(`the browser could not build a shader: ${gl.getProgramInfoLog(program)} ${logs.join(" ")}`);
    }
    this.places = new Map();
    const count = gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS) ?? 0;
    for (let k = 0; k < count; k++) {
      const { name, type } = gl.getActiveUniform(program, k);
      this.places.set(name.replace("[0]", ""), [gl.getUniformLocation(program, name), this.#setter(type)]);
    }
  }

  #setter(type) {
    const { gl } = this;
    switch (type) {
      case gl.FLOAT: return (place, value) => gl.uniform1f(place, value);
      case gl.FLOAT_VEC2: return (place, value) => gl.uniform2fv(place, value);
      case gl.FLOAT_VEC3: return (place, value) => gl.uniform3fv(place, value);
      case gl.FLOAT_VEC4: return (place, value) => gl.uniform4fv(place, value);
      case gl.FLOAT_MAT3: return (place, value) => gl.uniformMatrix3fv(place, false, value);
      case gl.FLOAT_MAT4: return (place, value) => gl.uniformMatrix4fv(place, false, value);
      default: return (place, value) => gl.uniform1i(place, value);
    }
  }

  use(...uniforms) {
    if (!this.places) this.#found();
    this.gl.useProgram(this.program);
    for (const values of uniforms) this.set(values);
    return this;
  }

  /** Values by name; names that the program does not have are passed over, so that several share one set. */
  set(values) {
    for (const name in values) {
      const found = this.places.get(name);
      if (found) found[1](found[0], values[name]);
    }
  }
}

/** A texture of so many texels; `format` is one with a size, as RGBA8. */
export function makeTexture(gl, width, height, format, { linear = false, levels = 1 } = {}) {
  const texture = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, texture);
  gl.texStorage2D(gl.TEXTURE_2D, levels, format, width, height);
  const filter = linear ? gl.LINEAR : gl.NEAREST;
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, filter);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, levels > 1 ? gl.LINEAR_MIPMAP_LINEAR : filter);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
  return texture;
}

/** A framebuffer that draws into these textures. */
export function makeTarget(gl, colors, depth = null) {
  const target = gl.createFramebuffer();
  gl.bindFramebuffer(gl.FRAMEBUFFER, target);
  const places = colors.map((texture, k) => {
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0 + k, gl.TEXTURE_2D, texture, 0);
    return gl.COLOR_ATTACHMENT0 + k;
  });
  gl.drawBuffers(places);
  if (depth) gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, depth, 0);
  return target;
}

export function bindTextures(gl, textures, first = 0) {
  textures.forEach((texture, k) => {
    gl.activeTexture(gl.TEXTURE0 + first + k);
    gl.bindTexture(gl.TEXTURE_2D, texture);
  });
}

/** Records in rows of a texture of whole numbers, where vertex shaders find them by number; `words` u32 in a texel. */
export class Records {
  constructor(gl, words, texels = 1, perRow = 1024) {
    this.gl = gl;
    const formats = { 1: [gl.R32UI, gl.RED_INTEGER], 2: [gl.RG32UI, gl.RG_INTEGER], 4: [gl.RGBA32UI, gl.RGBA_INTEGER] };
    this.format = formats[words];
    Object.assign(this, { words, width: texels * perRow, rows: 0, texture: null });
  }

  /** Take `data` (bytes or words of whole records). */
  fill(data) {
    const { gl, width, format } = this, all = new Uint32Array(data.buffer, data.byteOffset, data.byteLength >> 2);
    const texels = all.length / this.words, whole = Math.floor(texels / width), rows = Math.ceil(texels / width);
    if (rows > this.rows) {
      gl.deleteTexture(this.texture);
      this.rows = Math.ceil(1.25 * rows);
      this.texture = makeTexture(gl, width, this.rows, format[0]);
    }
    gl.bindTexture(gl.TEXTURE_2D, this.texture);
    const put = (row, wide, tall) => gl.texSubImage2D(
      gl.TEXTURE_2D, 0, 0, row, wide, tall, format[1], gl.UNSIGNED_INT, all, row * width * this.words);
    if (whole) put(0, width, whole);
    if (rows > whole) put(whole, texels - whole * width, 1);
  }

  free() {
    this.gl.deleteTexture(this.texture);
  }
}
